import { isIP } from 'node:net'

/** What libpq, or another driver, makes of a DB_URL by itself: PostgreSQL would be asked for a setting of that name, and refuse. */
const ofOthers = new Set([
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

/** A DB_URL, taken apart. */
export interface Address {
  /** As the driver takes it. */
  readonly url: string
  /** How it wants TLS, where the driver does not do it: whose certificate it must be is not told to Node when the host is an address. */
  readonly tls: { readonly ssl?: { readonly host: string } }
  /** The places that it names. */
  readonly where: string
}

/** @throws Error with a sentence, without any of it */
export function addressOf (text: string): Address {
  const [, scheme = '', authority = '', path = '', query = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*)([^?]*)(.*)$/s.exec(text) ?? []
  const [userinfo, hosts] = [authority.slice(0, authority.lastIndexOf('@') + 1), authority.slice(authority.lastIndexOf('@') + 1).split(',')]
  const first = `${scheme}${userinfo}${hosts[0] ?? ''}${path}${query}`
  // An @ behind the first slash: it is a password that has one.
  if (path.includes('@') || !URL.canParse(first) || !hosts.every((host) => URL.canParse(`${scheme}${host}/`)) || !isEncoded(authority)) {
    throw new Error(
      'DB_URL cannot be read: it is postgres://<user>:<password>@<host>:<port>/<database>, with special characters of the password as %xx ("/" is %2F, "@" is %40, "#" is %23, "%" is %25).'
    )
  }
  const { hostname, searchParams } = new URL(first)
  const mode = searchParams.get('sslmode') ?? searchParams.get('ssl') ?? 'disable'
  // The tables are in that schema anyway.
  const kept = query
    .slice(1)
    .split('&')
    .filter((each) => each !== '' && each !== 'schema=public' && !ofOthers.has(each.split('=', 1)[0] ?? ''))
  return {
    url: `${scheme}${authority}${path}${kept.length === 0 ? '' : `?${kept.join('&')}`}`,
    tls: isIP(hostname) !== 0 && !['disable', 'false', 'allow', 'prefer', 'require'].includes(mode) ? { ssl: { host: hostname } } : {},
    where: hosts.filter(Boolean).map((host) => /:[0-9]+$/.test(host) ? host : `${host}:5432`).join(', ') || 'localhost:5432'
  }
}

/** Whether each % begins a character, as `URL` does not ask. */
function isEncoded (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
