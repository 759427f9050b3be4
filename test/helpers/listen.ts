import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import type { Cleanup } from './hub.ts'

type Listening = Pick<Server, 'listen' | 'address' | 'close'> & Partial<Pick<HttpServer, 'closeAllConnections'>>

/** Has a server listen on loopback until the test ends. @returns its port */
export async function listen (t: Cleanup, server: Listening, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => { server.listen(0, host, resolve) })
  t.after(() => { server.close(); server.closeAllConnections?.() })
  return (server.address() as AddressInfo).port
}
