import { isIntegerName, orderedEntries } from './order.ts'

/** Max size of a value that is serialized in one step, in characters and values. */
const pieceSize = 32 * 1024
/** The depth at which the members of an object are entries of a section. */
const sectionDepth = 1
/** Max depth to which large values are split into pieces. */
const maxSplitDepth = 8

/**
 * A large entry of a section, with the pieces of its text. Entries are immutable, so a caller can cache the bytes of
 * the pieces by `entry`.
 */
interface LargeEntry { readonly entry: object, readonly pieces: Iterable<DocumentPiece> }
export type DocumentPiece = string | LargeEntry

type Member = readonly [name: string, value: unknown]

/** The text of a settings file: indented JSON, with the servers in their order. */
export function documentText (document: Readonly<object>): string {
  return [...flattenPieces(documentPieces(document))].join('')
}

/** The texts of pieces, in order. */
function * flattenPieces (pieces: Iterable<DocumentPiece>): Generator<string> {
  for (const piece of pieces) {
    if (typeof piece === 'string') yield piece
    else yield * flattenPieces(piece.pieces)
  }
}

/**
 * The text of a settings file in pieces, each of which is produced quickly: a config may have megabytes, and there may
 * be 10,000 servers.
 */
export function * documentPieces (document: Readonly<object>): Generator<DocumentPiece> {
  yield * piecesOf(document, 0)
  yield '\n'
}

/**
 * The indented JSON of a value in pieces; its first line is not indented.
 * @param depth the number of levels around it in the document
 */
function * piecesOf (value: unknown, depth: number): Generator<DocumentPiece> {
  if (typeof value !== 'object' || value === null) {
    yield JSON.stringify(value)
    return
  }
  const isList = Array.isArray(value)
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  const indent = `\n${'  '.repeat(depth + 1)}`
  let before = open
  for (const { members, isLarge } of batchesOf(membersOf(value), depth + 1)) {
    yield before + indent
    before = ','
    if (!isLarge) {
      yield linesOf(isList ? members.map(([, element]) => element) : Object.fromEntries(members), depth)
      continue
    }
    for (const [name, member] of members) {
      if (!isList) yield `${JSON.stringify(name)}: `
      const pieces = piecesOf(member, depth + 1)
      if (depth === sectionDepth && typeof member === 'object' && member !== null) yield { entry: member, pieces }
      else yield * pieces
    }
  }
  yield before === open ? `${open}${close}` : `${indent.slice(0, -2)}${close}`
}

const membersOf = (value: object): Member[] => Array.isArray(value)
  ? value.map((element: unknown) => ['', element])
  : orderedEntries(value as Record<string, unknown>).filter(([, member]) => member !== undefined)

/**
 * The lines of a value's members without the brackets; the first line is not indented. Nesting the value in as many
 * lists makes JSON.stringify indent it.
 */
function linesOf (value: object, depth: number): string {
  let wrapped = value
  for (let level = 0; level < depth; level++) wrapped = [wrapped]
  const lines = JSON.stringify(wrapped, null, 2)
  // The number of characters that the lines with brackets take up before the members, and again after them.
  const around = (depth + 1) * (depth + 2)
  return lines.slice(around + 2 * (depth + 1), -around)
}

interface Batch { readonly members: readonly Member[], readonly isLarge: boolean }

/**
 * Groups members into batches: small ones together; each large one alone, and each whose name JavaScript would sort
 * before others. Sections of the document count as large, since the order of servers is not that of their object.
 */
function * batchesOf (members: readonly Member[], depth: number): Generator<Batch> {
  let batch: Member[] = []
  let size = 0
  for (const member of members) {
    const [name, value] = member
    const own = name.length + sizeOf(value, pieceSize)
    const isLarge = depth === 1 || (depth < maxSplitDepth && own > pieceSize)
    const isAlone = isLarge || isIntegerName(name)
    size += own
    if (batch.length > 0 && (isAlone || size > pieceSize)) {
      yield { members: batch, isLarge: false }
      batch = []
      size = own
    }
    if (isAlone) yield { members: [member], isLarge }
    else batch.push(member)
  }
  if (batch.length > 0) yield { members: batch, isLarge: false }
}

/** The number of characters and values in a value. Counting stops once the number is greater than `most`. */
function sizeOf (value: unknown, most: number): number {
  if (typeof value === 'string') return 1 + value.length
  let size = 1
  if (typeof value !== 'object' || value === null) return size
  for (const name of Object.keys(value)) {
    size += name.length + sizeOf((value as Record<string, unknown>)[name], most - size)
    if (size > most) break
  }
  return size
}
