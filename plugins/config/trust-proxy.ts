import { isIP } from 'node:net'

/** Words for some addresses, as the library that looks at them has them. */
const words = new Set(['loopback', 'linklocal', 'uniquelocal'])

/** TRUST_PROXY as Fastify takes it: everybody, a number of hops, or a list of addresses. @throws Error naming the entry that is none */
export function trustedProxies (text: string): boolean | string[] | ((address: string, hop: number) => boolean) {
  if (text === '' || text === 'false') return false
  if (text === 'true') return true
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = text.split(',').map((each) => each.trim())
  const wrong = proxies.find((each) => !words.has(each) && !isRange(each))
  if (wrong !== undefined) {
    throw new Error(
      `The environment variable TRUST_PROXY cannot have ${JSON.stringify(wrong)}: expected true, false, a number of proxies, or addresses and ranges as "127.0.0.1", "10.0.0.0/8", "loopback".`
    )
  }
  return proxies
}

/** An address, alone or with the length of its prefix, or a mask. */
function isRange (text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  return (
    prefix === undefined ||
    (version === 4 && isMask(prefix)) ||
    (/^[1-9][0-9]{0,2}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128))
  )
}

/** A mask: ones, then zeros. */
const isMask = (text: string): boolean =>
  isIP(text) === 4 &&
  /^1+0*$/.test(
    text
      .split('.')
      .map((each) => Number(each).toString(2).padStart(8, '0'))
      .join('')
  )
