-- What the scripts share: settings from the environment, and the line they end with.
local common = {}

common.slugs = tonumber(os.getenv("SLUGS") or "100000")
common.order = os.getenv("ORDER") or "random"
math.randomseed(tonumber(os.getenv("SEED") or "1"))

-- A request for a path, as wrk sends it; `wrk.format` costs more and gives the same bytes.
function common.get(path)
  return "GET " .. path .. " HTTP/1.1\r\nHost: " .. wrk.headers["Host"] .. "\r\n\r\n"
end

-- RESULT requests requests/s p50 p95 p99 (milliseconds) answers-above-399 broken-connections
function common.result(summary, latency)
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT %d %.0f %.3f %.3f %.3f %d %d\n", summary.requests,
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000, latency:percentile(95) / 1000,
    latency:percentile(99) / 1000, summary.errors.status, broken))
end

return common
