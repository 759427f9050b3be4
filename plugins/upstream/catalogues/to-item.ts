import { isObject, memberOf, membersOf, smallMemberOf, withMembers } from '../../../protocol/json.ts'
import { readableTool } from '../../../protocol/modern/for-legacy-clients.ts'
import { listKinds, type Item, type ListKind } from '../../../protocol/lists.ts'
import { itemShapes } from '../../../protocol/mended-members.ts'
import { mend } from '../../../protocol/mending.ts'
import { latestModern } from '../../../protocol/modern/envelope.ts'
import { truncate } from '../../../protocol/text.ts'
import { limits } from '../../base/limits/index.ts'
import { checkedMembers, itemProblem } from './item-problem.ts'

/** Receives what is told of single items. */
interface ItemNotes {
  /** An item is left out, with the reason. */
  readonly warn: (sentence: string) => void
  /** Something in an item is read as absent. @param place a path within it */
  readonly mended: (name: string, place: string) => void
}

/** Characters that are not seen where a name is shown, or change what is seen of others: controls, bidirectional ones too, and tags. */
const unseen = /[\p{Cc}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu

/** Size of items of which single members are parsed, in characters: below, all of an item is parsed in less time. */
export const largeItem = 16 * 1024

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

/** An item as it is kept. @param written as its server wrote it @returns undefined: it is left out */
export function toItem (written: string, kind: ListKind, notes: ItemNotes): Item | undefined {
  const { key } = listKinds[kind]
  const { warn } = notes
  if (written.length > limits.itemSize) {
    const name = smallMemberOf(written, key)
    const which = typeof name === 'string' ? JSON.stringify(truncate(name, 200)) : 'an item'
    warn(`${which} is larger than ${limits.itemSize} characters and is left out`)
    return undefined
  }
  const { text, places } = mend(written, itemShapes[kind])
  const value: unknown = text.length > largeItem ? lookedAt(text, key, kind) : JSON.parse(text)
  if (!isObject(value) || typeof value[key] !== 'string' || value[key] === '') {
    warn(`an item without ${JSON.stringify(key)} is left out`)
    return undefined
  }
  const name = value[key]
  // Such a name cannot be told from another one where it is shown, and breaks lines of logs.
  const seen = kind === 'resources' || kind === 'resourceTemplates' ? name : name.replace(unseen, '\u{fffd}')
  if (seen !== name) {
    warn(`${JSON.stringify(seen)} has control characters in its name and is left out`)
    return undefined
  }
  const changes: Record<string, string> = {}
  // The name of a resource is for people to see.
  if (value.name === undefined) {
    changes.name = JSON.stringify(name)
    value.name = name
  }
  const { description, inputSchema } = value
  if (kind === 'tools' && !isObject(inputSchema)) {
    warn(`${JSON.stringify(name)} has no inputSchema and is left out`)
    return undefined
  }
  const problem = itemProblem(kind, value)
  if (problem !== undefined) {
    warn(`${JSON.stringify(truncate(name, 200))} is left out: ${problem}`)
    return undefined
  }
  if (typeof description === 'string' && description.length > limits.description) {
    changes.description = JSON.stringify(truncate(description, limits.description))
  }
  // MCP requires the type, which arguments have anyway.
  if (isObject(inputSchema) && inputSchema.type === undefined) {
    changes.inputSchema = withMembers(memberOf(text, 'inputSchema') ?? '{}', { type: '"object"' })
  }
  const item = { key: name, text: Object.keys(changes).length === 0 ? text : withMembers(text, changes) }
  if (kind === 'tools' && readableTool(item.text) === undefined) {
    warn(`${JSON.stringify(name)} is left out for clients before ${latestModern}, which cannot read its inputSchema`)
  }
  if (places[0] !== undefined) notes.mended(name, places[0])
  return item
}
