-- The first SLUGS slugs, at random or (ORDER=sequence) one after another from SKIP on. The requests are made before the
-- measurement, so that wrk's own core has little else to do than to send them.
package.path = os.getenv("BENCH_LUA") .. "/?.lua;" .. package.path
local common = require("common")

local requests, position = {}, tonumber(os.getenv("SKIP") or "0")

function init()
  for place = 1, common.slugs do
    local number = common.order == "sequence" and place - 1 or math.random(0, common.slugs - 1)
    requests[place] = common.get(string.format("/s%06d", number))
  end
end

function request()
  position = position % #requests + 1
  return requests[position]
end

done = common.result
