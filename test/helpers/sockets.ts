// Connections to an app that listens, for what goes over the wire byte by byte.
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Cleanup } from './hub.ts'

export interface Client {
  socket: Socket
  /** What the gateway has sent so far. */
  read: () => string
  /** How many answers it has begun. */
  answers: () => number
}

export interface DialOptions { from?: string, port?: number }

/** Connects; closed after the test. @param from the address that it comes from @param port another one than the app's */
export async function dial (t: Cleanup, app: FastifyInstance, { from, port }: DialOptions = {}): Promise<Client> {
  const socket = connect({ port: port ?? (app.server.address() as AddressInfo).port, host: '127.0.0.1', localAddress: from })
  t.after(() => { socket.destroy() })
  let text = ''
  socket.on('data', (chunk) => { text += String(chunk) })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { socket, read: () => text, answers: () => text.split('HTTP/1.1 ').length - 1 }
}
