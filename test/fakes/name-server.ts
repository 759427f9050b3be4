import { createSocket, type RemoteInfo } from 'node:dgram'
import type { AddressInfo } from 'node:net'
import { path, type Cleanup } from '../helpers/hub.ts'

export interface NameServer {
  /** The address for `dns.setServers`: host and port. */
  readonly address: string
  /** The names that were asked for, in order. */
  readonly asked: string[]
  /** The environment of a gateway process whose look-ups for users' servers come here. */
  readonly env: Record<string, string>
}

/**
 * A name server on loopback. Names that end in `.slow.test` are never answered, all others are 127.0.0.1.
 * @see forward-names.mjs
 */
export async function nameServer (t: Cleanup): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  socket.on('message', (query, from) => {
    const name = nameIn(query)
    asked.push(name)
    if (!name.endsWith('.slow.test')) answer(query, from)
  })
  const answer = (query: Buffer, { address, port }: RemoteInfo): void => {
    const end = 12 + query.subarray(12).indexOf(0) + 5
    const isFour = query.readUInt16BE(end - 4) === 1
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(isFour ? 1 : 0, 6)
    head.fill(0, 8)
    // A pointer to the name of the question, type A, class IN, 60 s, and 4 bytes of address.
    const record = isFour ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]) : Buffer.alloc(0)
    socket.send(Buffer.concat([head, query.subarray(12, end), record]), port, address)
  }
  await new Promise<void>((resolve) => { socket.bind(0, '127.0.0.1', resolve) })
  t.after(() => { socket.close() })
  const address = `127.0.0.1:${(socket.address() as AddressInfo).port}`
  return { address, asked, env: { NODE_OPTIONS: `--import=${path('test/fakes/forward-names.mjs')}`, TEST_NAME_SERVER: address } }
}

/** The name that a query asks for. */
function nameIn (query: Buffer): string {
  const labels: string[] = []
  for (let at = 12, length = query[at] ?? 0; length > 0; at += length + 1, length = query[at] ?? 0) {
    labels.push(query.subarray(at + 1, at + 1 + length).toString('latin1'))
  }
  return labels.join('.').toLowerCase()
}
