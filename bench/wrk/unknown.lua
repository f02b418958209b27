-- A flood of slugs that do not exist, hardly one of them twice.
package.path = os.getenv("BENCH_LUA") .. "/?.lua;" .. package.path
local common = require("common")

function request()
  return common.get(string.format("/x%09d", math.random(0, 999999999)))
end

done = common.result
