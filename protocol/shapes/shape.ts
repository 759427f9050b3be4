/** Describes a value in a message, and how an invalid value is repaired. A value without a shape may be anything. */
export interface Shape {
  /** Whether the value is an object: then `[]` is read as an empty object. */
  readonly isObject?: boolean
  /** The shapes of an object's known members. */
  readonly members?: Readonly<Record<string, Shape>>
  /** The shape of all other members of an object, whose names are arbitrary. */
  readonly each?: Shape
  /** The shape of a list's elements. */
  readonly element?: Shape
  /** The required type. A value of another type is converted by `coerce`, or read as `null`. Default: any type. */
  readonly type?: JsonType
  /** The allowed values, as JSON texts. Any other value is treated like a value of a wrong type. */
  readonly values?: readonly string[]
  /** Converts a value of a wrong type, given as JSON text. @returns undefined to read the value as `null` */
  readonly coerce?: (text: string) => string | undefined
  /** Members to add if the object lacks them, each with its `fallback`. */
  readonly required?: readonly string[]
  /** The JSON text that replaces `null`. Default: the member or element is removed. */
  readonly fallback?: string | ((textOf: (key: string) => string | undefined) => string)
  /** Whether `fallback` applies. @param valueOf returns a sibling member's value; undefined: missing or null */
  readonly isNeeded?: (valueOf: (key: string) => unknown) => boolean
  /** The key of a member without which the object is useless: if it is null, the whole object is treated as null. */
  readonly needs?: string
  /** Returns the shape that replaces this one. @param text the value, as JSON text */
  readonly select?: (text: string) => Shape
  /** Like `select`, for a parsed value. Default: whether such a value conforms is unknown. */
  readonly selectParsed?: (value: unknown) => Shape
}

export type JsonType = 'string' | 'number' | 'boolean' | 'object' | 'list'
