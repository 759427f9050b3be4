import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../problems.ts'

/**
 * The URL of the first Server Object, with the default of each server variable.
 * @param baseUrl the URL that a relative one is resolved against
 * @returns undefined where there is no server, or only a relative one and no base URL
 * @throws DescriptionError where the URL is not valid
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
    throw new DescriptionError(`the server ${JSON.stringify(address)} is not reached by http or https`)
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
