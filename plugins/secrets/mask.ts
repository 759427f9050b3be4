import { isObject } from '../../protocol/json.ts'

const dots = '••••'

/** A secret as it may be shown: that there is one, and its last four characters where it is long enough to spare them. */
export const mask = (secret: string): string => secret.length < 12 ? dots : `${dots}${secret.slice(-4)}`

export const isMask = (value: unknown): boolean => typeof value === 'string' && value.includes(dots)

/** Names of arguments and query parameters whose values are secrets. */
const secretName = /(key|token|secret|passw|pwd|auth|credential|signature)/i

/** An address as it may be shown: without a password, and without the values of its query. */
export function maskUrl (text: string): string {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  const pieces = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/.exec(text)
  const base = (pieces?.[1] ?? text).replace(/^([a-z+.-]+:\/\/)[^/@]*@/i, `$1${dots}@`)
  const query = [...url.searchParams].map(([name, value]) => `${name}=${mask(value)}`).join('&')
  return `${base}${query === '' ? '' : `?${query}`}${pieces?.[3] ?? ''}`
}

/** Arguments as they may be shown: what follows `--api-key`, or stands behind `--token=`, is masked. */
export function maskArgs (args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(arg) ?? []
    if (name !== undefined && value !== undefined && secretName.test(name)) return `${name}=${mask(value)}`
    const before = args[at - 1]
    if (before !== undefined && /^-{1,2}[\w.-]+$/.test(before) && secretName.test(before) && !arg.startsWith('-')) return mask(arg)
    return URL.canParse(arg) && /^[a-z+.-]+:\/\//i.test(arg) ? maskUrl(arg) : arg
  })
}

/** Members whose every value is a secret, wherever they stand in a config. */
const secretMaps = new Set(['env', 'headers'])

/** A server's config as those may see it who manage it. */
export function maskConfig (config: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const masked: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(config)) {
    if (secretMaps.has(key) && isObject(value)) masked[key] = Object.fromEntries(Object.entries(value).map(([name, secret]) => [name, typeof secret === 'string' ? mask(secret) : secret]))
    else if (key === 'url' && typeof value === 'string') masked[key] = maskUrl(value)
    else if (key === 'args' && Array.isArray(value)) masked[key] = maskArgs(value.map(String))
    else if (isObject(value) && key !== 'tools' && key !== 'prompts' && key !== 'resources' && key !== 'schema') masked[key] = maskConfig(value)
    else if (typeof value === 'string' && secretName.test(key)) masked[key] = mask(value)
    else masked[key] = value
  }
  return masked
}

/**
 * A config that came back from somebody who was shown masks: each mask stands for the secret at its place.
 * @returns the config, and the places whose masks stand for nothing
 */
export function unmask (sent: unknown, stored: unknown, shown: unknown, path = ''): { value: unknown, unknown: string[] } {
  if (isMask(sent)) return sent === shown && stored !== undefined ? { value: stored, unknown: [] } : { value: sent, unknown: [path] }
  if (Array.isArray(sent)) {
    const parts = sent.map((each, at) => unmask(each, Array.isArray(stored) ? stored[at] : undefined, Array.isArray(shown) ? shown[at] : undefined, `${path}.${at}`))
    return { value: parts.map(({ value }) => value), unknown: parts.flatMap((part) => part.unknown) }
  }
  if (!isObject(sent)) return { value: sent, unknown: [] }
  const unknown: string[] = []
  const entries = Object.entries(sent).map(([key, each]) => {
    const part = unmask(each, isObject(stored) && Object.hasOwn(stored, key) ? stored[key] : undefined, isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined, path === '' ? key : `${path}.${key}`)
    unknown.push(...part.unknown)
    return [key, part.value]
  })
  return { value: Object.fromEntries(entries), unknown }
}
