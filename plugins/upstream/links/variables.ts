import type { ServerConfig } from '../../../schemas/server.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** A config as a connection is made with it. */
export interface Expanded {
  /** With the values filled in: to connect with, never to be kept or shown. */
  config: ServerConfig
  /** What stands there as it was written, and why, in sentences without values. */
  warnings: string[]
  /** Takes the values out of a text again, for errors that people read. */
  hide: (text: string) => string
}

/** Our own secrets, whatever a config asks for. Compared in upper case: to some systems names are the same in both. */
const ours = [/^(JWT_SECRET|DB_URL|ADMIN_PASSWORD|ENCRYPTION_KEY)$/, /_CLIENT_SECRET$/, /^SOCIAL_AUTH_/, /^PG/]
export const isOurs = (name: string): boolean => ours.some((pattern) => pattern.test(name.toUpperCase()))

/** Shorter values are no secrets, and stand in many words. */
const shortestHidden = 4

/**
 * Fills `${NAME}` in from the environment, once (what a value holds is not looked at again), in `env`, `headers`, `url` and `args`.
 * Only configs that an admin stored, or that stand in the file, are filled in. What is not set, or is ours alone, stays as written.
 */
export function expand (config: ServerConfig, environment: Environment): Expanded {
  const warnings = new Set<string>()
  const values = new Map<string, string>()
  const fill = (text: string, place: string): string => text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (written, name: string) => {
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    if (config.storedByUser === true) warnings.add(`${written} in ${place} is not filled in: an admin has to store this server for that`)
    else if (isOurs(name)) warnings.add(`${written} in ${place} is not filled in: it is a secret of the gateway's own`)
    else if (value === undefined) warnings.add(`${written} in ${place} is not set`)
    else {
      values.set(value, written)
      return value
    }
    return written
  })
  const { env, headers, url, args } = config
  const all = (map: Record<string, string>, place: string): Record<string, string> =>
    Object.fromEntries(Object.entries(map).map(([name, text]) => [name, fill(text, place)]))
  const expanded: ServerConfig = {
    ...config,
    ...(env && { env: all(env, 'env') }),
    // Values from files often end with a line break, which no header may hold.
    ...(headers && { headers: Object.fromEntries(Object.entries(all(headers, 'headers')).map(([name, text]) => [name, text.trim()])) }),
    ...(url !== undefined && { url: fill(url, 'url') }),
    ...(args && { args: args.map((arg) => fill(arg, 'args')) })
  }
  if (url !== undefined && expanded.url !== url) hideHost(values, url, expanded.url ?? '')
  const hidden = [...values].filter(([value]) => value.length >= shortestHidden).sort(([a], [b]) => b.length - a.length)
  return {
    config: expanded,
    warnings: [...warnings],
    hide: (text) => hidden.reduce((rest, [value, written]) => rest.replaceAll(value, written), text)
  }
}

/** Errors name the host that was not reached: a part of what was filled in. */
function hideHost (values: Map<string, string>, written: string, filled: string): void {
  const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)/i.exec(written)?.[1] ?? ''
  if (!host.includes('${') || !URL.canParse(filled)) return
  const url = new URL(filled)
  for (const each of [url.host, url.hostname]) if (!values.has(each)) values.set(each, host)
}
