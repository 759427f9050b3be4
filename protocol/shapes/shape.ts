/** The form of a place in a message, which decides how `null` and `[]` are read there; without it, both stay. */
export interface Shape {
  /** An object belongs here and no list: `[]` is an object without members. */
  readonly isObject?: boolean
  /** The known members of an object. */
  readonly members?: Readonly<Record<string, Shape>>
  /** Every other member of an object: its author chooses their names. */
  readonly each?: Shape
  /** Every element of a list. */
  readonly element?: Shape
  /** The type: what is of another is read as `coerce` says, by default as `null`. Default: types do not count. */
  readonly type?: JsonType
  /** The values that count, as JSON texts; others are read as one of another type. */
  readonly values?: readonly string[]
  /** Converts a value of another type, as JSON text. @returns undefined if the value is read as absent */
  readonly coerce?: (text: string) => string | undefined
  /** The members that an object gets where it lacks them, each with its `fallback`. */
  readonly required?: readonly string[]
  /** The JSON text that replaces `null` where a value is required. Default: the member or element is removed. */
  readonly fallback?: string | ((textOf: (key: string) => string | undefined) => string)
  /** Whether `fallback` applies. @param valueOf the value of a member beside this one; undefined: none, or null */
  readonly isNeeded?: (valueOf: (key: string) => unknown) => boolean
  /** The key of a required member: where it is null, the whole object counts as null. */
  readonly needs?: string
  /** Selects another shape by the text. */
  readonly of?: (text: string) => Shape
}

export type JsonType = 'string' | 'number' | 'boolean' | 'object' | 'list'
