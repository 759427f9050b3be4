/** What becomes of the one key of old settings, for the operator and for the client whose change did it. */
export const legacyKeyWarning =
  'routing.bearerAuthKey became the bearer key "default". It opens every MCP route, and the management API with the rights of an admin. ' +
  'To narrow it, set its "accessType" to "groups", "servers" or "custom" (PUT /api/auth/keys/:id), or remove it and create other keys'

/** The same for one that is not taken. */
export const legacyKeyIgnored =
  '"routing.bearerAuthKey" was ignored: this gateway has bearer keys of its own, and that member becomes one only once, where there are ' +
  'none. Create a key with POST /api/auth/keys'
