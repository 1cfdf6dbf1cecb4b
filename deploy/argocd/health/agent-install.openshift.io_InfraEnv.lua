-- An InfraEnv is healthy when hosts can boot its discovery image.
local health = { status = "Progressing", message = "Waiting for the discovery image" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "ImageCreated" then
      health.message = condition.message or condition.reason
      if condition.status == "True" then
        health.status = "Healthy"
      elseif condition.status == "False" then
        health.status = "Degraded"
      end
    end
  end
end
return health
