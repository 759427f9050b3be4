import { isObject } from '../../../protocol/json.ts'
import { securityOf } from '../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { isMask } from '../../base/secrets/index.ts'

/** Members of OpenAPI descriptions, of any version, that determine where calls and credentials are sent. */
const addressMembers = new Set(['servers', 'host', 'basePath', 'schemes', 'tokenUrl', 'openIdConnectUrl'])

/** The values of those members, at any depth. @param schema the description, or its text, which then counts as a whole */
export function addressesOf (schema: unknown): unknown[] {
  if (!isObject(schema) && !Array.isArray(schema)) return typeof schema === 'string' ? [schema] : []
  return Object.entries(schema)
    .flatMap(([key, value]) => (addressMembers.has(key) ? [value] : addressesOf(value)))
    .filter((each) => each !== undefined)
}

/** The addresses and the command to which the secrets of a config are sent, as a text for comparison. Masks are left out. */
export function targetOf (config: unknown): string {
  const { url, command, openapi, proxy, oauth } = config as ServerConfig
  const security = openapi?.security && securityOf(openapi.security)
  const targets = [
    url,
    command,
    openapi?.url,
    ...addressesOf(openapi?.schema),
    security?.tokenUrl,
    security?.url,
    proxy?.url,
    oauth?.authorizationEndpoint,
    oauth?.tokenEndpoint,
    oauth?.issuer
  ]
  return JSON.stringify(targets.map((target) => isMask(target) ? undefined : target))
}
