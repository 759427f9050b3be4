import { errors } from '../base/errors/index.ts'
import { headerNames, isModernVersion, latestModern } from '../../protocol/modern/envelope.ts'
import { acceptedBy } from './accept.ts'
import type { Inbound } from './endpoint.ts'
import type { LegacyEndpoint } from './legacy/endpoint.ts'
import type { ModernEndpoint } from './modern/endpoint.ts'
import { isModern } from './modern/request.ts'
import { readMessage } from './read-message.ts'

/** Streamable HTTP for clients of both eras. Each request chooses its era. */
export class StreamableHttp {
  readonly #legacy: LegacyEndpoint
  readonly #modern: ModernEndpoint

  constructor (legacy: LegacyEndpoint, modern: ModernEndpoint) {
    this.#legacy = legacy
    this.#modern = modern
  }

  /** A POST: messages of a client. @throws errors in the dialect of the `mcp` scope */
  post (inbound: Inbound, text: string): void {
    const { headers } = inbound
    const accepted = acceptedBy(headers.accept)
    if (!accepted.json && !accepted.events) throw new errors.NotAcceptable('application/json or text/event-stream')
    const message = readMessage(text)
    if (isModern(headers, message)) this.#modern.receive(inbound, accepted, message)
    else this.#legacy.receive(inbound, accepted, message)
  }

  /** A GET: a stream of a legacy session. */
  get (inbound: Inbound): void {
    this.#mustBeLegacy(inbound)
    this.#legacy.get(inbound)
  }

  /** A DELETE: the end of a legacy session. */
  delete (inbound: Inbound): void {
    this.#mustBeLegacy(inbound)
    this.#legacy.delete(inbound)
  }

  /** The modern era has requests by POST only. @throws MethodNotAllowed */
  #mustBeLegacy ({ headers, raw }: Inbound): void {
    if (!isModernVersion(headers[headerNames.version])) return
    raw.setHeader('allow', 'POST')
    throw Object.assign(
      new errors.MethodNotAllowed('POST'), { message: `MCP ${latestModern} has requests by POST only` }
    )
  }
}
