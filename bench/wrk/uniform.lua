-- Any of SLUGS slugs, each as likely as the other: too many to be made beforehand.
package.path = os.getenv("BENCH_LUA") .. "/?.lua;" .. package.path
local common = require("common")

function request()
  return common.get(string.format("/s%06d", math.random(0, common.slugs - 1)))
end

done = common.result
