import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../problems.ts'

/**
 * The address of the first of these servers, its variables replaced by their defaults.
 * @param from what a relative address is relative to
 * @returns undefined when there is none, or only a relative one and nothing to be relative to
 * @throws DescriptionError when it cannot be read
 */
export function serverUrlOf (servers: unknown, from: string | undefined): string | undefined {
  const [server] = Array.isArray(servers) ? servers : []
  if (!isObject(server) || typeof server.url !== 'string') return undefined
  const variables = isObject(server.variables) ? server.variables : {}
  const address = server.url.replace(/\{([^{}]+)\}/g, (_whole, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
    const [first] = isObject(variable) && Array.isArray(variable.enum) ? variable.enum : []
    const value = isObject(variable) ? variable.default ?? first : undefined
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw new DescriptionError(`the server ${JSON.stringify(server.url)} has a variable "${name}" without a default`)
    }
    return String(value)
  })
  if (!URL.canParse(address, from)) {
    if (from === undefined && !/^[a-z][a-z\d+.-]*:/i.test(address)) return undefined
    throw new DescriptionError(`the server ${JSON.stringify(address)} is no address`)
  }
  const url = new URL(address, from)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new DescriptionError(`the server ${JSON.stringify(address)} is not reached by http or https`)
  }
  return url.href
}
