import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { Refused, type Policy } from './policy.ts'

/** Looks a name up, as `dns.lookup` does when it gives all addresses. */
export type Resolver = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
) => void

/**
 * Opens sockets to addresses that may be reached, and to no others: the addresses that were checked are the ones that are dialled,
 * whatever a name says a moment later. Host and SNI keep the name.
 * @param timeout for look-up, connection and TLS together, in ms
 */
export function guardedConnector (policy: Policy, trusted: boolean, resolve: Resolver, timeout: number): buildConnector.connector {
  const lookup: LookupFunction = (name, options, callback) => {
    resolve(name, { ...options, all: true } as LookupAllOptions, (error, addresses) => {
      if (error) { callback(error, []); return }
      try {
        const admitted = policy.admit(name, addresses, trusted)
        const [first] = admitted
        if (options.all === true) callback(null, admitted)
        else if (first) callback(null, first.address, first.family)
      } catch (refused) {
        callback(refused as Refused, [])
      }
    })
  }
  const dial = buildConnector({ timeout, lookup })
  return (options, callback) => {
    const refusal = policy.refusal(options.hostname, trusted)
    if (refusal === undefined) dial(options, callback)
    else process.nextTick(callback, new Refused(refusal), null)
  }
}
