import { cachingOf, strictestCaching, type Caching } from '../../../protocol/caching.ts'
import { eachElement, isObject, memberOf, membersOf, smallMemberOf, withMembers } from '../../../protocol/json.ts'
import { readableTool } from '../../../protocol/legacy/readable-tool.ts'
import { listKinds, type Item, type ListKind } from '../../../protocol/lists.ts'
import { latestModern } from '../../../protocol/modern/envelope.ts'
import { copyOf, cut, memoryOf } from '../../../protocol/text.ts'
import { LoopBudget, turnForLongWork } from '../../../protocol/yield.ts'
import { limits } from '../../limits/index.ts'
import { checkedMembers, itemProblem } from './item-problem.ts'

/**
 * Reads all pages of one of an upstream's lists.
 * @param request sends a request to the upstream; resolves to the text of its result
 * @param warn called with a sentence for everything that is left out
 * @param most max memory of its items, in bytes; never more than `limits.listSize`
 */
export async function readList (
  kind: ListKind,
  request: (method: string, params: string) => Promise<string>,
  warn: (sentence: string) => void,
  most = Infinity
): Promise<{ items: Item[], extra: string, caching: Caching | undefined }> {
  const mostSize = Math.max(0, Math.min(most, limits.listSize))
  const { method, key } = listKinds[kind]
  const items: Item[] = []
  const seen = new Set<string>()
  let extra = '{}'
  let size = 0
  let cursor: string | undefined
  let caching: Caching | undefined
  for (let page = 0; ; page++) {
    const result = await request(method, cursor === undefined ? '{}' : `{"cursor":${cursor}}`)
    // Pages of many servers may arrive at once.
    if (result.length > largeItem) await turnForLongWork()
    const budget = new LoopBudget()
    const { list, next, rest } = partsOf(result, kind)
    if (budget.spent) await budget.yieldToEventLoop()
    // How long it may be kept is not a part of the list: it may be another time with each reading.
    if (page === 0) extra = copyOf(withMembers(rest, { ttlMs: undefined, cacheScope: undefined }))
    caching = page === 0 ? cachingOf(rest) : strictestCaching(caching, cachingOf(rest))
    if (extra.length > limits.itemSize) {
      warn(`${kind}: the other members of the result are larger than ${limits.itemSize} characters and are left out`)
      extra = '{}'
    }
    if (budget.spent) await budget.yieldToEventLoop()
    const [first, before] = [items.length, size]
    for (const text of eachElement(list)) {
      if (budget.spent) await budget.yieldToEventLoop()
      const item = toItem(text, key, kind, warn)
      if (item === undefined) continue
      if (seen.has(item.key)) {
        warn(`${kind}: ${JSON.stringify(item.key)} is listed twice; the first one counts`)
        continue
      }
      if (items.length >= limits.listItems) {
        warn(`${kind}: only the first ${limits.listItems} are taken`)
        detach(items, first, true)
        return { items, extra, caching }
      }
      size += memoryOf(item.text)
      if (size > mostSize) {
        warn(`${kind}: only what fits into ${mostSize} bytes is taken`)
        detach(items, first, true)
        return { items, extra, caching }
      }
      seen.add(item.key)
      items.push(item)
    }
    detach(items, first, size - before < result.length / 2)
    if (next === undefined || next === 'null' || next === cursor) return { items, extra, caching }
    if (page + 1 >= limits.listPages) {
      warn(`${kind}: only the first ${limits.listPages} pages are taken`)
      return { items, extra, caching }
    }
    cursor = next
  }
}

/** Takes the items from one on off the text of their page, where much of that was left out: they would keep all of it. */
function detach (items: Item[], first: number, isMuchLeftOut: boolean): void {
  if (!isMuchLeftOut) return
  for (const [at, { key, text }] of items.entries()) if (at >= first) items[at] = { key, text: copyOf(text) }
}

/** The parts of a page, found in one pass: it may have megabytes. `rest`: its other members. */
function partsOf (result: string, kind: ListKind): { list: string, next: string | undefined, rest: string } {
  let list = '[]'
  let next: string | undefined
  const rest: string[] = []
  for (const { key, keyStart, start, end } of membersOf(result)) {
    if (key === kind) list = result.slice(start, end)
    else if (key === 'nextCursor') next = result.slice(start, end)
    else rest.push(result.slice(keyStart, end))
  }
  return { list, next, rest: `{${rest.join()}}` }
}

/** Characters that are not seen where a name is shown, or change what is seen of others: controls, bidirectional ones too, and tags. */
const unseen = /[\p{Cc}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu

/** Size of items of which single members are parsed, in characters: below, all of an item is parsed in less time. */
const largeItem = 16 * 1024

/** The members of a large item that `toItem` looks at; of schemas only what they are, and their types. */
function lookedAt (text: string, key: string, kind: ListKind): Record<string, unknown> {
  const names = new Set([key, ...checkedMembers(kind)])
  const members: Record<string, unknown> = {}
  for (const { key: name, start, end } of membersOf(text)) {
    if (!names.has(name)) continue
    const isSchema = (name === 'inputSchema' || name === 'outputSchema') && text[start] === '{'
    members[name] = isSchema ? { type: smallMemberOf(text.slice(start, end), 'type') } : JSON.parse(text.slice(start, end))
  }
  return members
}

/** The changes by which members that are null become absent: MCP knows no such value for them, and many servers write it. */
const withoutNulls = (item: Record<string, unknown>, kind: ListKind): Record<string, undefined> =>
  Object.fromEntries(checkedMembers(kind).filter((name) => item[name] === null).map((name) => [name, undefined]))

function toItem (text: string, key: string, kind: ListKind, warn: (sentence: string) => void): Item | undefined {
  if (text.length > limits.itemSize) {
    const name = smallMemberOf(text, key)
    const which = typeof name === 'string' ? JSON.stringify(cut(name, 200)) : 'an item'
    warn(`${kind}: ${which} is larger than ${limits.itemSize} characters and is left out`)
    return undefined
  }
  const read: unknown = text.length > largeItem ? lookedAt(text, key, kind) : JSON.parse(text)
  if (!isObject(read) || typeof read[key] !== 'string' || read[key] === '') {
    warn(`${kind}: an item without ${JSON.stringify(key)} is left out`)
    return undefined
  }
  const name = read[key]
  // Such a name cannot be told from another one where it is shown, and breaks lines of logs.
  const seen = kind === 'resources' || kind === 'resourceTemplates' ? name : name.replace(unseen, '\u{fffd}')
  if (seen !== name) {
    warn(`${kind}: ${JSON.stringify(seen)} has control characters in its name and is left out`)
    return undefined
  }
  const changes: Record<string, string | undefined> = withoutNulls(read, kind)
  const value: Record<string, unknown> = { ...read, ...changes }
  // MCP requires a name of resources as well, which is for people to see.
  if (value.name === undefined) {
    changes.name = JSON.stringify(name)
    value.name = name
  }
  const { description, inputSchema } = value
  if (kind === 'tools' && !isObject(inputSchema)) {
    warn(`${kind}: ${JSON.stringify(name)} has no inputSchema and is left out`)
    return undefined
  }
  const problem = itemProblem(kind, value)
  if (problem !== undefined) {
    warn(`${kind}: ${JSON.stringify(cut(name, 200))} is left out: ${problem}`)
    return undefined
  }
  if (typeof description === 'string' && description.length > limits.description) {
    changes.description = JSON.stringify(cut(description, limits.description))
  }
  // MCP requires the type, which arguments have anyway.
  if (isObject(inputSchema) && inputSchema.type === undefined) {
    changes.inputSchema = withMembers(memberOf(text, 'inputSchema') ?? '{}', { type: '"object"' })
  }
  const item = { key: name, text: Object.keys(changes).length === 0 ? text : withMembers(text, changes) }
  if (kind === 'tools' && readableTool(item.text) === undefined) {
    warn(`${kind}: ${JSON.stringify(name)} is left out for clients before ${latestModern}, which cannot read its inputSchema`)
  }
  return item
}
