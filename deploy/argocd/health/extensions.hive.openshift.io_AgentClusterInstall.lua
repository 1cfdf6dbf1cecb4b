-- A cluster is healthy when it is installed; it waits for people where only people can go on.
local health = { status = "Progressing", message = "Waiting for the installation to start" }
if obj.status == nil or obj.status.conditions == nil then
  return health
end
local by_type = {}
for _, condition in ipairs(obj.status.conditions) do
  by_type[condition.type] = condition
end
local function is(type, status)
  return by_type[type] ~= nil and by_type[type].status == status
end
local function tell(status, type)
  return { status = status, message = by_type[type].message or by_type[type].reason }
end

if is("Completed", "True") then
  return tell("Healthy", "Completed")
end
if is("Failed", "True") then
  return tell("Degraded", "Failed")
end
if is("SpecSynced", "False") then
  -- What is missing, or does not answer, is waited for.
  local waits = by_type.SpecSynced.reason == "BackendError"
  return tell(waits and "Progressing" or "Degraded", "SpecSynced")
end
if by_type.Completed ~= nil and by_type.Completed.reason == "InstallationInProgress" then
  return tell("Progressing", "Completed")
end
if is("LastInstallationPreparationFailed", "True") then
  return tell("Degraded", "LastInstallationPreparationFailed")
end
if is("Stopped", "True") then
  return tell("Degraded", "Stopped")
end
if by_type.Completed ~= nil and by_type.Completed.reason == "InstallationOnHold" then
  return tell("Suspended", "Completed")
end
if by_type.RequirementsMet ~= nil and by_type.RequirementsMet.reason == "UnapprovedAgents" then
  return tell("Suspended", "RequirementsMet")
end
if is("Validated", "False") then
  return tell("Progressing", "Validated")
end
if is("RequirementsMet", "False") then
  return tell("Progressing", "RequirementsMet")
end
if by_type.Completed ~= nil then
  return tell("Progressing", "Completed")
end
return health
