import { isIP } from 'node:net'

/**
 * URL parameters of libpq, other drivers and poolers. postgres.js would send them to PostgreSQL as session settings,
 * which PostgreSQL would reject.
 */
const foreignParameters = new Set([
  'channel_binding',
  'gssencmode',
  'gsslib',
  'gssdelegation',
  'krbsrvname',
  'sslsni',
  'sslcompression',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'tcp_user_timeout',
  'load_balance_hosts',
  'pgbouncer',
  'connection_limit',
  'pool_timeout',
  'socket_timeout',
  'statement_cache_size',
  'supa',
  'workaround',
  'uselibpqcompat'
])

/** The values of `sslmode` that do not verify the server's certificate. */
const unverifiedModes = ['disable', 'false', 'allow', 'prefer', 'require']

/** The parsed DB_URL of a server. */
export interface DatabaseAddress {
  /** The URL for postgres.js, without the parameters that it cannot handle. */
  readonly url: string
  /**
   * Contains the option `ssl` for postgres.js if the host is an IP address and the certificate is verified: the host
   * that the certificate must be for. Otherwise empty.
   */
  readonly tls: { readonly ssl?: { readonly host: string } }
  /** The hosts and their ports, separated by commas, for messages. */
  readonly location: string
}

/** Parses the DB_URL of a server. @throws Error if it is invalid; the message contains no part of the URL */
export function parseDatabaseUrl (text: string): DatabaseAddress {
  const [, scheme = '', authority = '', path = '', query = ''] =
    /^(postgres(?:ql)?:\/\/)([^/?#]*)([^?]*)(.*)$/s.exec(text) ?? []
  const hostsStart = authority.lastIndexOf('@') + 1
  const userinfo = authority.slice(0, hostsStart)
  const hosts = authority.slice(hostsStart).split(',')
  const firstHostUrl = `${scheme}${userinfo}${hosts[0] ?? ''}${path}${query}`
  const hasValidHosts = hosts.every((host) => URL.canParse(`${scheme}${host}/`))
  // An @ in the path shows that the password contains an unescaped slash.
  if (path.includes('@') || !URL.canParse(firstHostUrl) || !hasValidHosts || !isPercentEncoded(authority)) {
    throw new Error(
      'DB_URL is not valid: it must be postgres://<user>:<password>@<host>:<port>/<database>, ' +
      'with special characters in the password as %xx ("/" is %2F, "@" is %40, "#" is %23, "%" is %25).'
    )
  }
  const { hostname, searchParams } = new URL(firstHostUrl)
  const mode = searchParams.get('sslmode') ?? searchParams.get('ssl') ?? 'disable'
  // `schema=public` is removed as well: the tables are in that schema anyway.
  const parameters = query
    .slice(1)
    .split('&')
    .filter((each) => each !== '' && each !== 'schema=public' && !foreignParameters.has(each.split('=', 1)[0] ?? ''))
  return {
    url: `${scheme}${authority}${path}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`,
    tls: isIP(hostname) !== 0 && !unverifiedModes.includes(mode) ? { ssl: { host: hostname } } : {},
    location: hosts.filter(Boolean).map(withPort).join(', ') || 'localhost:5432'
  }
}

const withPort = (host: string): string => /:[0-9]+$/.test(host) ? host : `${host}:5432`

/** Whether each % begins a valid escape sequence, which `URL` does not check. */
function isPercentEncoded (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
