import type { FastifyReply } from 'fastify'

/**
 * Says that a resource was made, and where it is (RFC 9110, section 15.3.2).
 * @param collection its path below `/api`
 */
export function created (reply: FastifyReply, collection: string, key: string): void {
  reply.code(201).header('location', `${reply.server.config.basePath}/api/${collection}/${encodeURIComponent(key)}`)
}

interface Succeeded<Data> { success: true, data: Data, message: string, warnings?: string[] }

/**
 * The answer of a write that succeeded. Warnings are in `warnings`, and in `message`, which is all that some clients show.
 * @param message a sentence without a full stop
 */
export function succeeded<Data> (data: Data, message: string, warnings: readonly string[]): Succeeded<Data> {
  const text = [message, ...warnings].join('. ')
  return { success: true, data, message: text, ...(warnings.length > 0 && { warnings: [...warnings] }) }
}
