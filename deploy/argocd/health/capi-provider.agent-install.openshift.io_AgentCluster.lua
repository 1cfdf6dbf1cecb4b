-- An AgentCluster is healthy when machines can be added; until then it says what it waits for.
local health = { status = "Progressing", message = "Waiting for the control plane" }
if obj.status == nil then
  return health
end
if obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" then
      health.message = condition.message
      if health.message == nil or health.message == "" then
        health.message = condition.reason
      end
      if condition.reason == "ClusterDeploymentNotFound" or condition.reason == "BadIgnitionEndpoint" then
        return { status = "Degraded", message = health.message }
      end
    end
  end
end
if obj.status.ready == true then
  return { status = "Healthy", message = "Machines can be added" }
end
return health
