import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { code, RpcError, type Reason } from '../../../protocol/errors.ts'
import { isObject, memberOf, smallMemberOf, withMembers } from '../../../protocol/json.ts'
import { isModernCode, modernCode } from '../../../protocol/modern/envelope.ts'
import type { ShareError } from '../../base/limits/index.ts'
import type { Outcome } from './outcome.ts'

/** HTTP statuses of errors that are about the request as such (MCP 2026-07-28, "Streamable HTTP"); all others have 200. */
const statuses: Readonly<Record<number, number>> = {
  [code.parse]: 400,
  [code.invalidRequest]: 400,
  [code.methodNotFound]: 404,
  [modernCode.headerMismatch]: 400,
  [modernCode.missingCapability]: 400,
  [modernCode.unsupportedVersion]: 400
}

/** HTTP statuses of errors by their cause, whatever their code: a bound is reached, by all callers or by this one's share (RFC 6585). */
const statusesByReason: Partial<Record<Reason, number>> = { limit: 503, share: 429 }

/** The status of an error that stands alone in its HTTP answer. @param other the status of errors that have none of their own */
export const statusOf = ({ reason, code }: RpcError, other = 200): number => statusesByReason[reason] ?? statuses[code] ?? other

/** The error for a caller who has had his share, or for all where a bound is reached. */
export const ofShare = ({ message, isOwners }: ShareError): RpcError =>
  new RpcError(code.unavailable, message, isOwners ? 'share' : 'limit')

/**
 * An error as this era has it. Codes of former revisions that it must not use have others; and what a server says of the gateway's own
 * request to it says nothing of the client's, except that the client lacks a capability, where that is so.
 */
export function errorOutcome (error: RpcError, capabilities: ClientCapabilities): Outcome {
  const told = error.reason === 'upstream' ? ofUpstream(error, capabilities) : error
  const text = told.toText()
  switch (told.code) {
    case code.resourceNotFound: return failed(withMembers(text, { code: String(code.invalidParams) }), 200)
    // Where it can be put to the client, it is a question (`elicitation.ts`).
    case code.urlElicitationRequired: return unopened(text, told, capabilities)
    default: return isReserved(told.code) ? failed(withMembers(text, { code: String(code.internal) }), 200) : failed(text, statusOf(told))
  }
}

/** Codes that only MCP defines, and does not yet: servers of earlier revisions were free to use them ("Error Codes"). */
const isReserved = (number: number): boolean => number >= -32099 && number < modernCode.unsupportedVersion

const openUrls = { elicitation: { url: {} } }

/** An address has to be opened, which the client cannot be asked for: it does not declare that it can, or not during this request. */
function unopened (text: string, { message }: RpcError, capabilities: ClientCapabilities): Outcome {
  if (missingOf(openUrls, capabilities) === undefined) {
    return failed(withMembers(text, { code: String(code.internal), data: undefined }), 200)
  }
  return failed(missingCapabilities(message, openUrls).toText(), 400)
}

const failed = (text: string, status: number): Outcome => ({ kind: 'error', parts: [text], status })

function ofUpstream (error: RpcError, capabilities: ClientCapabilities): RpcError {
  // The session of a modern server has given it a code of all eras already.
  const mayLack = error.code === modernCode.missingCapability || error.code === code.invalidRequest
  const missing = mayLack ? missingIn(error.toText(), capabilities) : undefined
  if (missing === undefined && !isModernCode(error.code)) return error
  if (missing === undefined) return new RpcError(code.internal, `The server refused the gateway's request: ${error.message}`, 'upstream')
  return missingCapabilities(error.message, missing)
}

/** -32021: the request needs capabilities that the client does not declare. */
export function missingCapabilities (message: string, requiredCapabilities: Readonly<Record<string, unknown>>): RpcError {
  const number = modernCode.missingCapability
  return new RpcError(number, message, 'upstream', JSON.stringify({ code: number, message, data: { requiredCapabilities } }))
}

/** Those of the capabilities which a server requires that the client does not declare; undefined: there are none. */
function missingIn (text: string, capabilities: ClientCapabilities): Record<string, unknown> | undefined {
  const required = smallMemberOf(memberOf(text, 'data') ?? '{}', 'requiredCapabilities')
  return isObject(required) ? missingOf(required, capabilities) : undefined
}

function missingOf (required: Readonly<Record<string, unknown>>, capabilities: ClientCapabilities): Record<string, unknown> | undefined {
  const missing = Object.entries(required).filter(([name, value]) => lacks(capabilities[name], value))
  return missing.length === 0 ? undefined : Object.fromEntries(missing)
}

const lacks = (own: unknown, required: unknown): boolean =>
  own === undefined || (isObject(own) && isObject(required) && Object.keys(required).some((name) => own[name] === undefined))
