import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Cleanup } from './hub.ts'

/** Has a server listen on loopback until the test ends. @returns its port */
export async function listen (t: Cleanup, server: Pick<Server, 'listen' | 'address' | 'close' | 'closeAllConnections'>, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => { server.listen(0, host, resolve) })
  t.after(() => { server.close(); server.closeAllConnections() })
  return (server.address() as AddressInfo).port
}
