import type { FastifyReply } from 'fastify'
import { Disconnect } from '../plugins/tools/disconnect.ts'

/** Tells when the connection of a reply closes before the answer was sent. */
export function disconnectOf ({ raw }: FastifyReply): Disconnect {
  const disconnect = new Disconnect()
  raw.once('close', () => { if (!raw.writableFinished) disconnect.happen() })
  return disconnect
}
