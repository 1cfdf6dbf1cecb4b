-- An AgentMachine is healthy when its host is installed; until then it says what it waits for.
local health = { status = "Progressing", message = "Waiting for a host" }
if obj.status == nil then
  return health
end
if obj.status.failureMessage ~= nil then
  return { status = "Degraded", message = obj.status.failureMessage }
end
if obj.status.ready == true then
  return { status = "Healthy", message = "The host is installed" }
end
if obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Installed" and condition.reason == "InstallationFailed" then
      return { status = "Degraded", message = condition.message or condition.reason }
    end
    if condition.type == "Ready" then
      health.message = condition.message
      if health.message == nil or health.message == "" then
        health.message = condition.reason
      end
    end
  end
end
return health
