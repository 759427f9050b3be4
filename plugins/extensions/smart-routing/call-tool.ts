import { argumentsTextOf, DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { isDeeperThan, memberOf, membersOf, parseJsonObject, withMembers } from '../../../protocol/json.ts'
import { inPresentation, type View } from '../../settings/index.ts'
import type { CallTool } from '../../gateway/index.ts'
import { unknownToolHint } from './own-tools.ts'
import { baseLimits } from '../../base/limits/index.ts'

/** The exchanges with which `call_tool` calls other tools. */
const madeByCallTool = new WeakSet<Exchange>()
/** Whether an exchange is a call that `call_tool` makes to another tool. */
export const isMadeByCallTool = (exchange: Exchange): boolean => madeByCallTool.has(exchange) ||
  // A hook may have derived this exchange from the one that `call_tool` made.
  (exchange instanceof DerivedExchange && isMadeByCallTool(exchange.original))

/**
 * Runs `call_tool {toolName, arguments}`: calls the named tool in the merged view of the same principal and scope.
 * Progress, cancellation, server requests, limits, hooks and records apply to the named tool, not to `call_tool`.
 * @returns the result of the named tool, as JSON text
 * @throws RpcError the errors of a direct call, and -32602 if the arguments of `call_tool` are invalid
 */
export async function runCallTool (exchange: Exchange<View>, call: CallTool): Promise<string> {
  try {
    const named = exchangeForNamedTool(exchange)
    madeByCallTool.add(named)
    return await call(named)
  } catch (error) {
    if (!(error instanceof RpcError) || error.reason !== 'unknown-tool') throw error
    throw new RpcError(error.code, error.message + unknownToolHint, error.reason)
  }
}

/**
 * Returns the exchange that calls the named tool. The JSON text of the arguments is not serialized again.
 * @throws RpcError -32602
 */
function exchangeForNamedTool (exchange: Exchange<View>): Exchange<View> {
  const { params, paramsText, view } = exchange
  const argumentsText = argumentsTextOf(exchange)
  const name = parseToolName(argumentsText)
  const text = argumentsIn(argumentsText)
  let args: unknown
  const get = (): unknown => {
    args ??= JSON.parse(text)
    return args
  }
  return new DerivedExchange(exchange, {
    view: inPresentation(view, 'merged'),
    paramsText: withMembers(paramsText, { name: JSON.stringify(name), arguments: text }),
    // Members of params are parsed only when read, since a request may be large.
    params: Object.defineProperties({}, {
      ...Object.getOwnPropertyDescriptors(params),
      name: { value: name, enumerable: true },
      arguments: { get, enumerable: true }
    }) as Record<string, unknown>
  })
}

/** The names of the arguments that `call_tool` accepts. */
const callToolMembers: ReadonlySet<string> = new Set(['toolName', 'arguments', '_meta'])
/** Max length of `toolName`, in characters of JSON; longer names are rejected. */
const maxNameLength = 4_096
/** Max length of `arguments` that are sent as a string, in characters of JSON; longer ones are rejected. */
const maxArgumentsLength = 256 * 1024

/**
 * Returns the `toolName` in the arguments of `call_tool` or `describe_tool`.
 * @param text the arguments, as JSON text
 * @throws RpcError -32602 if it is missing, empty, too long or not a string
 */
export function parseToolName (text: string): string {
  const member = memberOf(text, 'toolName') ?? 'null'
  const name: unknown = member.length > maxNameLength ? undefined : JSON.parse(member)
  if (typeof name === 'string' && name !== '') return name
  throw new RpcError(rpcCode.invalidParams, `Invalid params: "toolName" must be the tool's name${unknownToolHint}`)
}

/**
 * Returns the arguments for the named tool, as the JSON text of an object. The model may send an object, or a string
 * that contains the JSON text of an object, as models often do.
 * @param text the arguments of `call_tool`, as JSON text
 * @throws RpcError -32602
 */
function argumentsIn (text: string): string {
  const member = memberOf(text, 'arguments') ?? 'null'
  if (member.startsWith('{')) return member
  if (member === 'null') {
    // Some models put the arguments beside `toolName`. Without this error, the tool would run with its defaults.
    const other = membersOf(text).find(({ key }) => !callToolMembers.has(key))?.key
    if (other === undefined) return '{}'
    throw new RpcError(rpcCode.invalidParams, `Invalid params: put ${JSON.stringify(other.slice(0, 100))} into ` +
      '"arguments", beside "toolName"')
  }
  const inner = member.startsWith('"') && member.length <= maxArgumentsLength ? JSON.parse(member) as string : undefined
  if (inner?.trim() === '') return '{}'
  if (inner !== undefined && !isDeeperThan(inner, baseLimits.requestDepth) && parseJsonObject(inner)) return inner
  throw new RpcError(rpcCode.invalidParams, 'Invalid params: "arguments" in "arguments" must be an object, as the ' +
    'tool\'s inputSchema says')
}
