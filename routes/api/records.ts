import type { FastifyReply } from 'fastify'
import { recordsJson } from '../../plugins/servers/item-texts.ts'

/** What this reply answers has servers' records in it, which may be large. */
export function answersRecords (reply: Pick<FastifyReply, 'type' | 'serializer'>): void {
  reply.type('application/json; charset=utf-8')
  // Its types speak of text; bytes are sent as they are.
  reply.serializer(recordsJson as (answer: unknown) => string)
}
