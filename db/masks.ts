import { isObject } from '../schemas/unknown-members.ts'

/** The dots that replace a secret in API responses. */
const mask = '••••'

/** The members of a server's config that may contain secrets. */
const members = ['env', 'headers', 'args', 'url', 'proxy', 'oauth', 'openapi']

/**
 * Finds the first value in a server's config that contains those dots.
 * @returns its path, such as `headers.authorization`; undefined: there is none
 */
export function maskIn (config: Record<string, unknown>): string | undefined {
  for (const name of members) {
    // An API description contains no secrets, and may be large.
    const value = name === 'openapi' &&
      isObject(config.openapi)
      ? { ...config.openapi, schema: undefined }
      : config[name]
    const path = pathOf(value, name)
    if (path !== undefined) return path
  }
  return undefined
}

function pathOf (value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.includes(mask) ? path : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = pathOf(each, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}
