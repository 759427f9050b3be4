import type { Catalogue } from '../../protocol/lists.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { ProviderStatus } from '../../protocol/provider.ts'
import type { Upstream } from './upstream.ts'

/** The result of one attempt to connect to a server. */
export interface ProbeResult {
  readonly status: Exclude<ProviderStatus, 'connecting' | 'disabled'>
  /** The reason why the server is not connected, as shown to its managers; null if it is connected. */
  readonly error: string | null
  readonly warnings: readonly string[]
  readonly catalogue: Catalogue | undefined
  /** How long the attempt took, in ms. */
  readonly time: number
}

/**
 * Connects an upstream once, closes it again, and returns the outcome.
 * @param make creates the upstream with a listener for changes of its status
 * @param time max time to wait, in ms
 * @param signal aborted when the result is no longer needed
 */
export async function probeServer (
  make: (statusChanged: () => void) => Upstream, time: number, signal: AbortSignal
): Promise<ProbeResult> {
  const begun = Date.now()
  let settle = (): void => {}
  const settled = new Promise<void>((resolve) => { settle = resolve })
  const upstream = make(() => { if (upstream.status !== 'connecting') settle() })
  const timer = setTimeout(settle, time)
  signal.addEventListener('abort', settle, { once: true })
  try {
    upstream.connect()
    if (!signal.aborted) await settled
    const { status, warnings } = upstream
    return {
      status: status === 'connecting' || status === 'disabled' ? 'disconnected' : status,
      error: status === 'connecting' ? `it did not connect within ${Math.round(time / 1_000)} s` : upstream.error,
      warnings,
      catalogue: status === 'connected' ? upstream.catalogues()[0] : undefined,
      time: Date.now() - begun
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', settle)
    await upstream.close()
  }
}

/** Dependencies of an upstream that is only tested: it stores nothing, and sends nothing to clients. */
export const probeDeps = {
  allowance: { setHeldSize: () => {}, waitTime: () => 0, store: () => {} },
  listener: {
    log: () => {},
    listsChanged: () => {},
    onQuestion: async () => {
      throw new RpcError(rpcCode.methodNotFound, 'no client can be asked while a server is tested')
    },
    onNotification: () => {},
    broadcast: () => {},
    taskHandle: () => undefined
  }
}
