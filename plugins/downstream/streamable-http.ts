import { errors } from '../base/errors/index.ts'
import { headerNames, isModernVersion, latestModernVersion } from '../../protocol/modern/envelope.ts'
import { parseAccept } from './accept.ts'
import type { InboundRequest } from './endpoint.ts'
import type { LegacyEndpoint } from './legacy/endpoint.ts'
import type { ModernEndpoint } from './modern/endpoint.ts'
import { isModernPost } from './modern/request.ts'
import { parseClientMessage } from './read-message.ts'

/** Handles streamable HTTP for clients of both protocol eras. The era is determined for each request. */
export class StreamableHttp {
  readonly #legacy: LegacyEndpoint
  readonly #modern: ModernEndpoint

  constructor (legacy: LegacyEndpoint, modern: ModernEndpoint) {
    this.#legacy = legacy
    this.#modern = modern
  }

  /** Handles a POST with messages. @throws RpcError, and errors that the error handler of the MCP routes sends */
  post (inbound: InboundRequest, text: string): void {
    const { headers } = inbound
    const accepted = parseAccept(headers.accept)
    if (!accepted.json && !accepted.events) throw new errors.NotAcceptable('application/json or text/event-stream')
    const message = parseClientMessage(text)
    if (isModernPost(headers, message)) this.#modern.receive(inbound, accepted, message)
    else this.#legacy.receive(inbound, accepted, message)
  }

  /** Handles a GET, which opens or resumes a stream of a legacy session. */
  get (inbound: InboundRequest): void {
    this.#mustBeLegacy(inbound)
    this.#legacy.get(inbound)
  }

  /** Handles a DELETE, which ends a legacy session. */
  delete (inbound: InboundRequest): void {
    this.#mustBeLegacy(inbound)
    this.#legacy.delete(inbound)
  }

  /** Rejects requests of the modern era, which allows only POST. @throws MethodNotAllowed */
  #mustBeLegacy ({ headers, raw }: InboundRequest): void {
    if (!isModernVersion(headers[headerNames.version])) return
    raw.setHeader('allow', 'POST')
    throw Object.assign(
      new errors.MethodNotAllowed('POST'), { message: `MCP ${latestModernVersion} sends all requests with POST` }
    )
  }
}
