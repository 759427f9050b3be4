// Large messages, read in steps: nothing of them is made a value that nobody looks at, and nobody else waits for them meanwhile.
import { RpcError } from './errors.ts'
import type { Member } from './json.ts'
import { JsonScanner, TooDeep, type WantedKeys } from './json-scanner.ts'
import { checkedNames } from './lookalikes.ts'
import { malformed, messageFromMembers, notMessages, parseMessage, type Malformed, type Message, type Sender } from './message.ts'
import { partOf, withoutMark } from './text.ts'
import { turnForLongWork } from './yield.ts'

/** Texts up to this length, in characters, are read at once. */
export const largeText = 256 * 1024

/** Lets others go first, between two steps of long work. Rejects where the work is to be given up. */
export type Pause = () => Promise<void>

/** Where long work is done: a step between any two calls of `pause`. The gateway bounds how much of it one owner may cause. */
export interface LargeWork { run: <Result>(owner: string, work: (pause: Pause) => Promise<Result>) => Promise<Result> }

/** Without bounds: a step in each turn of the event loop. */
export const inSteps: LargeWork = {
  run: async (_owner, work) => await work(turnForLongWork)
}

const membersOfMessage = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
/** The members of params that somebody reads. */
const membersOfParams = new Set([
  'name', 'uri', 'arguments', '_meta', 'cursor', 'task', 'taskId', 'level', 'progressToken', 'requestId', 'reason', 'elicitationId', 'ref',
  'protocolVersion', 'capabilities', 'clientInfo', 'url', 'mode', 'tools', 'requestState', 'inputResponses', 'notifications'
])
/** Max length of a member's text that is parsed at once, in characters; a longer one is parsed when it is read. */
const small = 16 * 1024

/** As `parseMessage`, in steps. @throws RpcError as there; what `pause` rejects with */
export async function readLargeMessage (
  written: string,
  maxDepth: number,
  maxBatch: number,
  pause: Pause,
  sender: Sender = 'client'
): Promise<Message | Array<Message | Malformed>> {
  const text = withoutMark(written)
  const scanner = await scanned(text, maxDepth, membersOfMessage, pause, maxBatch)
  if (!scanner.isArray) return await toMessage(text, scanner, maxDepth, pause, sender)
  if (scanner.elements === 0) throw notMessages.isEmpty()
  if (scanner.elements > maxBatch) throw notMessages.isTooLong(maxBatch)
  const messages: Array<Message | Malformed> = []
  let taken = 0
  for (const { start, end } of scanner.members) {
    const element = partOf(text, start, end)
    taken += element.length
    if (taken > largeText) {
      taken = 0
      await pause()
    }
    messages.push(await elementOf(element, maxDepth, pause, sender))
  }
  return messages
}

async function elementOf (text: string, maxDepth: number, pause: Pause, sender: Sender): Promise<Message | Malformed> {
  try {
    if (text.length > largeText) {
      return await toMessage(text, await scanned(text, maxDepth, membersOfMessage, pause), maxDepth, pause, sender)
    }
    const message = parseMessage(text, maxDepth, 1, sender)
    if (Array.isArray(message)) throw notMessages.isNoObject()
    return message
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return malformed(error, text.length > largeText ? undefined : JSON.parse(text), text)
  }
}

/** Reads a text to its end. @throws RpcError */
async function scanned (text: string, maxDepth: number, wanted: WantedKeys, pause: Pause, max?: number): Promise<JsonScanner> {
  const scanner = new JsonScanner(text, maxDepth, wanted, max)
  try {
    while (!scanner.step()) await pause()
  } catch (error) {
    if (error instanceof SyntaxError) throw notMessages.notJson()
    if (error instanceof TooDeep) throw notMessages.tooDeep(maxDepth)
    throw error
  }
  return scanner
}

async function toMessage (text: string, scanner: JsonScanner, maxDepth: number, pause: Pause, sender: Sender): Promise<Message> {
  if (!scanner.isObject) throw notMessages.isNoObject()
  const textOf = (key: string): string | undefined => {
    const member = scanner.members.findLast((each) => each.key === key)
    return member && partOf(text, member.start, member.end)
  }
  const value: Record<string, unknown> = {}
  for (const key of ['jsonrpc', 'id', 'method']) {
    const member = textOf(key)
    // A longer one is not valid, as an object is not.
    if (member !== undefined) value[key] = member.length <= small ? JSON.parse(member) : {}
  }
  // Of these only the type counts, besides their text.
  for (const key of ['result', 'error']) {
    const member = textOf(key)
    if (member !== undefined) value[key] = member.startsWith('{') ? {} : member === 'null' ? null : other
  }
  const params = textOf('params')
  if (params?.startsWith('{') !== true) {
    if (params !== undefined) value.params = params.length <= small ? JSON.parse(params) : other
    return withGaps(messageFromMembers(value, textOf, () => 0, sender), scanner, sender)
  }
  const names = checkedNames(String(value.method))
  const wanted = { size: membersOfParams.size, has: (key: string) => membersOfParams.has(key) || names.isLookalike(key) }
  const { members } = await scanned(params, maxDepth, wanted, pause)
  value.params = toParams(params, members)
  return withGaps(messageFromMembers(value, textOf, () => members.length, sender), scanner, sender)
}

/** In place of a value that is no object. */
const other = 0

/** Only what servers write is mended. */
function withGaps (message: Message, { hasGaps }: JsonScanner, sender: Sender): Message {
  if (sender === 'server') message.hasGaps = hasGaps
  return message
}

/** The params of a large message: those members that somebody reads, of which the large ones are parsed when they are read. */
function toParams (text: string, members: readonly Member[]): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const { key, start, end } of members) {
    const parse = (): unknown => JSON.parse(text.slice(start, end))
    const isSmall = end - start <= small
    let value = isSmall ? parse() : undefined
    let isParsed = isSmall
    const get = (): unknown => {
      if (!isParsed) value = parse()
      isParsed = true
      return value
    }
    Object.defineProperty(params, key, { configurable: true, enumerable: true, get })
  }
  return params
}
