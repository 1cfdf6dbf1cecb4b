-- An Agent is healthy when it does what is asked of it: free and fit, or bound and on its way, or installed.
local health = { status = "Progressing", message = "Waiting for the host to report" }
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

if is("Installed", "True") then
  return tell("Healthy", "Installed")
end
if is("SpecSynced", "False") then
  -- What is missing, or does not answer, is waited for.
  local waits = by_type.SpecSynced.reason == "BackendError"
  return tell(waits and "Progressing" or "Degraded", "SpecSynced")
end
if by_type.Installed ~= nil and by_type.Installed.reason == "InstallationFailed" then
  return tell("Degraded", "Installed")
end
if is("Connected", "False") then
  return tell("Degraded", "Connected")
end
if by_type.Bound ~= nil and by_type.Bound.reason == "UnbindingPendingUserAction" then
  return tell("Suspended", "Bound")
end
if is("Validated", "False") and by_type.Validated.reason == "ValidationsFailing" then
  return tell("Degraded", "Validated")
end
if by_type.RequirementsMet ~= nil and by_type.RequirementsMet.reason == "AgentIsNotApproved" then
  return tell("Suspended", "RequirementsMet")
end
if by_type.Bound ~= nil and by_type.Bound.reason == "Unbound" and is("Validated", "True") then
  return tell("Healthy", "Bound")
end
for _, type in ipairs({ "Installed", "RequirementsMet", "Validated" }) do
  if by_type[type] ~= nil then
    health.message = by_type[type].message or by_type[type].reason
    break
  end
end
return health
