// A peer whose transport writes down what it is told.
import assert from 'node:assert/strict'
import type { Message, Notification, RequestId, Response } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { RpcConnection } from '../../protocol/peer.ts'
import type { Receiver, SendOptions, Transport } from '../../protocol/transports/transport.ts'

/** A transport that only writes down what it is told. */
export class FakeTransport implements Transport {
  readonly sent: Array<{ message: Message, id: number | undefined }> = []
  readonly dropped: number[] = []
  receiver: Receiver | undefined
  async start (receiver: Receiver): Promise<void> { this.receiver = receiver }
  send (text: string, options?: SendOptions): void {
    const message = parseMessage(text, 100)
    assert.ok(!Array.isArray(message))
    this.sent.push({ message, id: options?.id })
  }

  drop (id: number): void { this.dropped.push(id) }
  async onNegotiated (): Promise<void> {}
  async close (): Promise<void> {}
  notifications (): Notification[] { return this.sent.flatMap(({ message }) => message.kind === 'notification' ? [message] : []) }
}

export async function startPeer (): Promise<{
  transport: FakeTransport, peer: RpcConnection, seen: Array<[string, unknown, number | undefined]>
}> {
  const transport = new FakeTransport()
  const seen: Array<[string, unknown, number | undefined]> = []
  const peer = new RpcConnection(transport, {
    request: (request, origin) => { seen.push(['request', request.method, origin]) },
    notification: (notification, origin) => { seen.push(['notification', notification.method, origin]) },
    closed: (error) => { seen.push(['closed', error.message, undefined]) }
  })
  await peer.start()
  return { transport, peer, seen }
}
export const answerTo = (id: RequestId | null, more: Partial<Response> = {}): Response => ({
  kind: 'response', id, resultText: `{"for":${JSON.stringify(id)}}`, ...more
})
