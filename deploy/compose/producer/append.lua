-- Appends ARGV[1] records to the open segment of the partition with the manifest
-- KEYS[1] and the streams KEYS[2]:<segment>. Being one script, it can't come too
-- late for the segment that it found.
math.randomseed(tonumber(redis.call('TIME')[2]))
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  if cjson.decode(entries[i + 1]).state == 'OPEN' then
    for n = 1, tonumber(ARGV[1]) do
      local id = tostring(math.random(1, 1000000))
      redis.call('XADD', KEYS[2] .. ':' .. entries[i], '*',
        'key', id, 'value', '{"id":' .. id .. ',"text":"' .. redis.sha1hex(id .. n) .. string.rep('lorem ipsum ', 12) .. '"}',
        'headers', '{"source":"try"}', 'timestamp', redis.call('TIME')[1] .. '000')
    end
  end
end
