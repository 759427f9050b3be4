import { isPlainObject } from '../schemas/unknown-members.ts'

/** The dots that replace a secret in API responses. */
const mask = '••••'

/** The members of a server's config in which the API masks secrets. */
const secretMembers = ['env', 'headers', 'args', 'url', 'proxy', 'oauth', 'openapi']

/**
 * Finds the first value in a server's config that contains a mask, presumably copied from an API response.
 * @returns its path, such as `headers.authorization`; undefined if there is none
 */
export function findMaskPath (config: Record<string, unknown>): string | undefined {
  for (const name of secretMembers) {
    // The API description is left out: it contains no secrets, and may be large.
    const value = name === 'openapi' && isPlainObject(config.openapi)
      ? { ...config.openapi, schema: undefined }
      : config[name]
    const path = findMask(value, name)
    if (path !== undefined) return path
  }
  return undefined
}

function findMask (value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.includes(mask) ? path : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = findMask(each, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}
