import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { Refused, type Policy } from './policy.ts'

/** Resolves a host name, with the signature of `dns.lookup` for all addresses. */
export type HostResolver = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
) => void

/**
 * A connector that opens sockets only to addresses that the policy admits. It connects to the addresses that it checked, so a name that
 * resolves differently a moment later (DNS rebinding) gains nothing. `Host` and SNI keep the name.
 * @param timeout for DNS look-up, connection and TLS together, in ms
 */
export function guardedConnector (policy: Policy, trusted: boolean, resolve: HostResolver, timeout: number): buildConnector.connector {
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
