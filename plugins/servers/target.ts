import { isObject } from '../../protocol/json.ts'
import { securityOf } from '../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { isMask } from '../secrets/mask.ts'

/** What an OpenAPI description says of where its calls and credentials go, in any version of the format. */
const placing = new Set(['servers', 'host', 'basePath', 'schemes', 'tokenUrl', 'openIdConnectUrl'])

/** All of that in a description, wherever it stands. @param schema the description, or its text: then the whole of it */
function addressesOf (schema: unknown): unknown[] {
  if (!isObject(schema) && !Array.isArray(schema)) return typeof schema === 'string' ? [schema] : []
  return Object.entries(schema)
    .flatMap(([key, value]) => (placing.has(key) ? [value] : addressesOf(value)))
    .filter((each) => each !== undefined)
}

/** Where a config's secrets go, as a text to be compared. */
export function targetOf (config: unknown): string {
  const { url, command, openapi, proxy, oauth } = config as ServerConfig & { oauth?: Record<string, unknown> }
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
    oauth?.tokenEndpoint
  ]
  return JSON.stringify(targets.map((target) => isMask(target) ? undefined : target))
}
