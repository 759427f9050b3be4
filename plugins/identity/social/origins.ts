/** The origin of an address; undefined for a text that is none, and for schemes that have no origin. */
export function originOf (address: string | undefined): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return origin === 'null' ? undefined : origin
}

/**
 * Origins from a list, or from a text: a JSON array, or separated by commas or white space (SPEC, "Social login").
 * @throws Error naming the first entry that is no origin
 */
export function parseOrigins (given: string | readonly string[]): string[] {
  const entries = typeof given === 'string' ? split(given) : given
  return entries.filter((each) => each !== '').map((each) => {
    const origin = originOf(each)
    if (origin === undefined || !/^https?:\/\/[^/\\?#@*\s]+\/?$/i.test(each)) {
      throw new Error(
        `SOCIAL_AUTH_TRUSTED_ORIGINS cannot have ${JSON.stringify(each)}: expected origins as "https://app.example.com", without a path.`
      )
    }
    return origin
  })
}

function split (text: string): readonly string[] {
  if (!text.trimStart().startsWith('[')) return text.split(/[\s,]+/)
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    list = undefined
  }
  if (Array.isArray(list) && list.every((each) => typeof each === 'string')) return list as string[]
  throw new Error('SOCIAL_AUTH_TRUSTED_ORIGINS begins as a JSON array and is none of strings.')
}

/**
 * Where a browser may be sent after a login: a path on this gateway, or an address of a trusted origin.
 * @returns undefined: it leads elsewhere
 */
export function safeTarget (target: string, isTrusted: (origin: string) => boolean): string | undefined {
  // Browsers take a backslash for a slash, and drop tabs and line breaks.
  if (/[\s\\]|\p{Cc}/u.test(target)) return undefined
  if (target.startsWith('/')) return target.startsWith('//') ? undefined : target
  const origin = originOf(target)
  return origin !== undefined && /^https?:/i.test(target) && isTrusted(origin) ? target : undefined
}
