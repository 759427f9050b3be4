import { extensionsLimits } from '../limits.ts'
import { definitionKeyOf, type Definition, type DefinitionKind } from './definitions.ts'

/** How definitions that are new or have changed are treated (`pin` in the config of a server). */
export type PinMode = 'off' | 'warn' | 'ask' | 'block'

/** A new or changed definition that waits for an admin. */
interface PendingDefinition {
  readonly digest: string
  /** The JSON text; absent beyond the size limits, and in memory. */
  readonly text?: string
  /** When the definition was first seen, in ISO 8601. */
  readonly since: string
  /** The catalogue that contains the definition; see `ServerPins.source`. */
  readonly source: string
}

/** What is recorded of one tool, prompt or skill, or of the instructions: the accepted definition and pending ones. */
export interface Pin {
  readonly kind: DefinitionKind
  readonly item: string
  /** The digest of the accepted definition; absent: the item is new and not accepted. */
  readonly digest?: string
  /** The JSON text of the accepted definition; absent beyond the size limits. */
  readonly text?: string
  /** The digests of definitions that were accepted in catalogues other than `ServerPins.source`. */
  readonly variants?: readonly string[]
  /** The user whose connection listed the item first; null for a connection of the gateway itself. */
  readonly by: string | null
  /** When the item was first listed, in ISO 8601. */
  readonly at: string
  /** The definitions that wait for an admin, oldest first. */
  readonly pending?: readonly PendingDefinition[]
  /** Digests of the changes that were reported to admins. */
  readonly told?: readonly string[]
}

/** The pinned definitions of a server, as stored. */
export interface ServerPins {
  /**
   * Identifies the catalogue that was read first, by its user and the capabilities of its clients. To other users or
   * clients, the server may list other definitions; if these are accepted, they are recorded as variants.
   */
  readonly source: string
  readonly pins: readonly Pin[]
}

/** The definitions of one catalogue, to be compared with the pins. `now`: the current time, in ISO 8601. */
interface DefinitionReading {
  readonly definitions: readonly Definition[]
  /** Identifies the catalogue, as `ServerPins.source` does. */
  readonly source: string
  /** The user whose connection listed the catalogue; undefined for a connection of the gateway itself. */
  readonly user: string | undefined
  readonly mode: PinMode
  readonly now: string
}

/** The result of comparing a catalogue with the pins. */
export interface PinComparison {
  /** The pins after the comparison. */
  readonly pinned: ServerPins
  /** Whether the pins must be stored. */
  readonly isChanged: boolean
  /** The items whose changes have not been reported to admins yet. */
  readonly unreported: ReadonlyArray<Pick<Pin, 'kind' | 'item'>>
}

/**
 * Whether a definition is accepted: it is the pinned one, or, in catalogues other than the first, a variant.
 * @param given the digest of the definition
 * @param isFirst whether the definition is in the catalogue that was read first
 */
export const isAcceptedDigest = ({ digest, variants }: Pin, given: string, isFirst: boolean): boolean =>
  digest === given || (!isFirst && digest !== undefined && variants?.includes(given) === true)

/**
 * Compares the definitions that a server lists now with the pinned ones. A pure function.
 * @param before the pins; undefined if nothing is pinned yet: then definitions are accepted, up to the limit
 */
export function compareWithPins (before: ServerPins | undefined, reading: DefinitionReading): PinComparison {
  const { definitions, source, user, now } = reading
  const room = { left: extensionsLimits.pins.text }
  const keep = (text: string | undefined): { text?: string } => {
    if (text === undefined || text.length > extensionsLimits.pins.item || text.length > room.left) return {}
    room.left -= text.length
    return { text }
  }
  const newPin = (definition: Definition): Pin =>
    ({ kind: definition.kind, item: definition.item, by: user ?? null, at: now })
  const acceptedPin = (definition: Definition): Pin =>
    ({ ...newPin(definition), digest: definition.digest, ...keep(definition.text) })
  if (before === undefined) {
    const pins = definitions.slice(0, extensionsLimits.pins.definitions).map(acceptedPin)
    return { pinned: { source, pins }, isChanged: true, unreported: [] }
  }
  for (const { text = '', pending = [] } of before.pins) {
    room.left -= pending.reduce((sum, each) => sum + (each.text?.length ?? 0), text.length)
  }
  const listed = new Map(definitions.map((definition) => [definitionKeyOf(definition), definition]))
  const unreported: Array<Pick<Pin, 'kind' | 'item'>> = []
  let isChanged = false
  const next: Pin[] = []
  for (const pin of before.pins) {
    const definition = listed.get(definitionKeyOf(pin))
    listed.delete(definitionKeyOf(pin))
    const compared = comparePin(pin, definition, { ...reading, isFirst: source === before.source }, keep)
    if (compared === pin) { next.push(pin); continue }
    isChanged = true
    if (compared === undefined) continue
    next.push(compared)
    const told = compared.told?.at(-1)
    if (told !== undefined && pin.told?.includes(told) !== true) unreported.push({ kind: pin.kind, item: pin.item })
  }
  const isNewHeld = reading.mode === 'ask' || reading.mode === 'block'
  for (const definition of listed.values()) {
    if (next.length >= extensionsLimits.pins.definitions) break
    isChanged = true
    if (!isNewHeld) { next.push(acceptedPin(definition)); continue }
    const { digest, kind, item, text } = definition
    next.push({ ...newPin(definition), pending: [{ digest, ...keep(text), since: now, source }], told: [digest] })
    unreported.push({ kind, item })
  }
  return { pinned: { source: before.source, pins: next }, isChanged, unreported }
}

/**
 * Compares a pin with the listed definition.
 * @param definition undefined if the item is not listed now
 * @param keep returns the text of a definition to store, if the size limits allow that
 * @returns the new pin; the same object if nothing has changed; undefined if the pin must be removed
 */
function comparePin (
  pin: Pin,
  definition: Definition | undefined,
  { source, mode, now, isFirst }: DefinitionReading & { readonly isFirst: boolean },
  keep: (text: string) => { text?: string }
): Pin | undefined {
  const { pending = [], told = [] } = pin
  const others = pending.filter((each) => each.source !== source)
  const withoutOwn = (): Pin | undefined => {
    if (others.length === pending.length) return pin
    if (pin.digest === undefined && others.length === 0) return undefined
    // If a change of the first catalogue comes back, it is reported again. Changes of other catalogues are not, since
    // such catalogues may alternate.
    const own = pending.flatMap((each) => each.source === source && isFirst ? each.digest : [])
    return withPending({ ...pin, told: told.filter((each) => !own.includes(each)) }, others)
  }
  if (definition === undefined || isAcceptedDigest(pin, definition.digest, isFirst)) return withoutOwn()
  const { digest, text } = definition
  const isNew = pin.digest === undefined
  if ((mode === 'off' && isFirst) || (isNew && (mode === 'off' || mode === 'warn'))) {
    return withPending({ ...withoutText(pin), digest, ...keep(text) }, [])
  }
  if (mode === 'off') return withoutOwn()
  if (pending.some((each) => each.digest === digest && each.source === source)) return pin
  const waiting = [...others, { digest, ...keep(text), since: now, source }]
  const next = withPending(pin, waiting.slice(-extensionsLimits.pins.pending))
  return told.includes(digest) ? next : { ...next, told: [...told, digest].slice(-extensionsLimits.pins.reported) }
}

const withoutText = ({ text: _, ...pin }: Pin): Pin => pin

function withPending ({ pending: _, ...pin }: Pin, pending: readonly PendingDefinition[]): Pin {
  return pending.length === 0 ? pin : { ...pin, pending }
}

/**
 * Accepts pending definitions of one item.
 * @param digest the digest of the only definition to accept; undefined: all pending definitions of the item
 * @returns the new pins; undefined if there is no such definition
 */
export function acceptPending (
  server: ServerPins, definition: Pick<Pin, 'kind' | 'item'>, digest?: string
): ServerPins | undefined {
  const pin = server.pins.find((each) => definitionKeyOf(each) === definitionKeyOf(definition))
  const chosen = pin?.pending?.filter((each) => digest === undefined || each.digest === digest) ?? []
  if (pin === undefined || chosen.length === 0) return undefined
  const main = chosen.findLast(({ source }) => source === server.source) ??
    (pin.digest === undefined ? chosen.at(-1) : undefined)
  const left = pin.pending?.filter((each) => !chosen.includes(each)) ?? []
  const variants = [...new Set([...pin.variants ?? [], ...chosen.map((each) => each.digest)])]
    .filter((each) => each !== (main?.digest ?? pin.digest)).slice(-extensionsLimits.pins.variants)
  const base = main === undefined
    ? pin
    : { ...withoutText(pin), digest: main.digest, ...main.text === undefined ? {} : { text: main.text } }
  const acceptedPin = withPending({ ...base, variants }, left)
  return { ...server, pins: server.pins.map((each) => each === pin ? acceptedPin : each) }
}

/**
 * Returns the form of pins that is kept in memory: without texts, except the accepted texts of items with pending
 * definitions, which `block` lists.
 */
export const withoutTexts = ({ source, pins }: ServerPins): ServerPins => ({
  source,
  pins: pins.map((pin) => {
    if (pin.pending === undefined) return withoutText(pin)
    return { ...pin, pending: pin.pending.map(({ text: _, ...pending }) => pending) }
  })
})
