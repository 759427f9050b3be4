import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError, type CredentialDefaults } from '../plan.ts'
import type { ReferenceResolver } from './refs.ts'

/**
 * Returns the absolute URL of the first Server Object, with the default values of its server variables.
 * @param servers the array of Server Objects
 * @param baseUrl the URL against which a relative URL is resolved
 * @returns undefined if there is no server, or its URL is relative and there is no base URL
 * @throws DescriptionError if the URL is invalid, or a server variable has neither a default nor an enum
 */
export function serverUrlOf (servers: unknown, baseUrl: string | undefined): string | undefined {
  const [server] = Array.isArray(servers) ? servers : []
  if (!isObject(server) || typeof server.url !== 'string') return undefined
  const address = withVariables(server.url, server.variables)
  if (!URL.canParse(address, baseUrl)) {
    if (baseUrl === undefined && !/^[a-z][a-z\d+.-]*:/i.test(address)) return undefined
    throw new DescriptionError(`the server ${JSON.stringify(address)} is not a valid URL`)
  }
  const url = new URL(address, baseUrl)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new DescriptionError(`the server ${JSON.stringify(address)} does not use http or https`)
  }
  return url.href
}

function withVariables (template: string, given: unknown): string {
  const variables = isObject(given) ? given : {}
  return template.replace(/\{([^{}]+)\}/g, (_match, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
    const [firstValue] = isObject(variable) && Array.isArray(variable.enum) ? variable.enum : []
    const value = isObject(variable) ? variable.default ?? firstValue : undefined
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw new DescriptionError(`the server ${JSON.stringify(template)} has a variable "${name}" without a default`)
    }
    return String(value)
  })
}

/**
 * Returns values from the first usable security scheme of each type. Schemes that the description's `security` requires
 * come before the others. A scheme with an unresolvable reference is skipped.
 * @param schemes the Security Scheme Objects, by name
 * @param security the description's `security`
 * @param baseUrl the URL against which relative URLs are resolved
 */
export function credentialDefaultsOf (
  schemes: Readonly<Record<string, unknown>>,
  security: unknown,
  refs: ReferenceResolver,
  baseUrl: string | undefined
): CredentialDefaults {
  const defaults: CredentialDefaults = {}
  const toAbsolute = (url: string): string => URL.canParse(url, baseUrl) ? new URL(url, baseUrl).href : url
  const requirements = Array.isArray(security)
    ? security.flatMap((each) => isObject(each) ? Object.keys(each) : [])
    : []
  const required = requirements.filter((name) => Object.hasOwn(schemes, name))
  for (const name of [...required, ...Object.keys(schemes)]) {
    const scheme = resolveScheme(schemes[name], refs)
    if (!scheme) continue
    const { type, name: parameterName, in: location, openIdConnectUrl, flows } = scheme
    if (type === 'apiKey' && typeof parameterName === 'string' && isLocation(location)) {
      defaults.apiKey ??= { name: parameterName, in: location }
    }
    if (type === 'openIdConnect' && typeof openIdConnectUrl === 'string') {
      defaults.openIdConnectUrl ??= toAbsolute(openIdConnectUrl)
    }
    const flow = type === 'oauth2' && isObject(flows) ? flows.clientCredentials : undefined
    if (isObject(flow) && typeof flow.tokenUrl === 'string') defaults.tokenUrl ??= toAbsolute(flow.tokenUrl)
  }
  return defaults
}

const isLocation = (value: unknown): value is 'header' | 'query' | 'cookie' =>
  value === 'header' || value === 'query' || value === 'cookie'

function resolveScheme (scheme: unknown, refs: ReferenceResolver): Record<string, unknown> | undefined {
  try {
    return refs.resolveObject(scheme)
  } catch {
    return undefined
  }
}
