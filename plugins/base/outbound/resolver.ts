import { lookup, Resolver as DnsResolver, type LookupAddress } from 'node:dns'
import { limits, Semaphore } from '../limits/index.ts'
import type { Allowed } from './allowed.ts'
import type { HostResolver } from './connector.ts'

/** The system's resolver, for servers of admins: it knows the hosts file, and holds one of a few threads while it waits. */
export const systemResolver: HostResolver = lookup

const places = new Semaphore({ places: limits.concurrentLookups, perOwner: limits.lookupsPerUser })

/**
 * The resolver for servers that a user stored. It asks the name servers without holding a thread, so names that are answered slowly do
 * not delay the look-ups of others, and one user's are looked up one after the other. Names in OUTBOUND_ALLOW are an admin's word, and
 * are left to the system's resolver.
 */
export function resolverFor (owner: string, allowed: Allowed): HostResolver {
  return (name, options, callback) => {
    if (allowed.name(name)) { systemResolver(name, options, callback); return }
    const begun = Date.now()
    void places.take(owner, false).then(async (release) => {
      try {
        // Whoever waited for it has given up.
        if (Date.now() - begun >= limits.connectTimeout) { callback(failure(name, 'ETIMEOUT'), []); return }
        callback(null, await lookUp(name, limits.connectTimeout - (Date.now() - begun)))
      } catch (error) {
        callback(error as NodeJS.ErrnoException, [])
      } finally {
        release()
      }
    })
  }
}

/** @param timeout in ms @throws the error of the name server, ETIMEOUT, ENOTFOUND */
async function lookUp (name: string, timeout: number): Promise<LookupAddress[]> {
  const resolver = new DnsResolver({ timeout: 2_500, tries: 2 })
  const timer = setTimeout(() => { resolver.cancel() }, timeout).unref()
  const ask = async (family: 4 | 6): Promise<LookupAddress[]> => await new Promise((resolve, reject) => {
    const done = (error: Error | null, addresses: string[]): void => {
      if (error) reject(error)
      else resolve(addresses.map((address) => ({ address, family })))
    }
    if (family === 4) resolver.resolve4(name, done)
    else resolver.resolve6(name, done)
  })
  const [four, six] = await Promise.allSettled([ask(4), ask(6)])
  clearTimeout(timer)
  const found = [four, six].flatMap((outcome) => outcome.status === 'fulfilled' ? outcome.value : [])
  if (found.length > 0) return found
  const { code } = (four.status === 'rejected' ? four.reason : {}) as NodeJS.ErrnoException
  throw failure(name, code === undefined || code === 'ENODATA' ? 'ENOTFOUND' : code)
}

/** An error as `dns.lookup` gives it. */
function failure (name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} cannot be resolved: ${code}`), { code, hostname: name })
}
