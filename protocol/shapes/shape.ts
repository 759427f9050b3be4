/** Describes a value in a message, and how an invalid value is repaired. A value without a shape may be anything. */
export interface Shape {
  /** Whether the value is an object: then `[]` is read as an empty object. */
  readonly isObject?: boolean
  /** The known members of an object. */
  readonly members?: Readonly<Record<string, Shape>>
  /** All other members of an object, whose names are arbitrary. */
  readonly each?: Shape
  /** All elements of a list. */
  readonly element?: Shape
  /** The required type. A value of another type is converted by `coerce`, or read as `null`. Default: any type. */
  readonly type?: JsonType
  /** The allowed values, as JSON texts. Any other value is treated like one of a wrong type. */
  readonly values?: readonly string[]
  /** Converts a value of a wrong type, given as JSON text. @returns undefined to read the value as `null` */
  readonly coerce?: (text: string) => string | undefined
  /** Members to add if the object lacks them, each with its `fallback`. */
  readonly required?: readonly string[]
  /** The JSON text that replaces `null`. Default: the member or element is removed. */
  readonly fallback?: string | ((textOf: (key: string) => string | undefined) => string)
  /** Whether `fallback` applies. @param valueOf the value of a sibling member; undefined: missing or null */
  readonly isNeeded?: (valueOf: (key: string) => unknown) => boolean
  /** The key of a required member: if that is null, the whole object is treated as null. */
  readonly needs?: string
  /** Selects another shape, which replaces this one, by the value's text. */
  readonly select?: (text: string) => Shape
}

export type JsonType = 'string' | 'number' | 'boolean' | 'object' | 'list'
