/** The location of a parameter: `in` of the Parameter Object. */
export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie'

/** The serialization styles of OpenAPI 3, and the tabs of Swagger 2.0. */
export type SerializationStyle =
  'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'tabDelimited' | 'deepObject'

/** The serialization of one value. */
export interface Serialization {
  style: SerializationStyle
  explode: boolean
  /** Whether reserved characters are not percent-encoded. */
  allowReserved?: true
}

export interface Parameter extends Serialization {
  /** The name of the tool's argument. */
  argument: string
  /** The name in the request. */
  name: string
  in: ParameterLocation
  required?: true
  /** Whether the value is serialized as JSON, and then as one string. */
  json?: true
  /** For path parameters: slashes in the value are kept. */
  withSlashes?: true
}

export interface BodyField {
  /** The name in the request. */
  name: string
  /** The name of the tool's argument, if it differs. */
  argument?: string
  required?: true
  /** Whether the value is bytes: the argument is base64, or a `data:` URL. */
  binary?: true
  /** The media type of the field's part, or of its value. */
  contentType?: string
  /** Undefined for the default serialization of the form's media type. */
  serialization?: Serialization
  /** In a multipart form: an array is sent as one part, with this text between its elements. */
  delimiter?: string
}

export interface RequestBody {
  contentType: string
  /** Whether the body may have another media type, which the argument states. */
  anyContentType?: true
  format: 'json' | 'urlencoded' | 'multipart' | 'text' | 'binary'
  required?: true
  /** The name of the argument that is the whole body; undefined if each field is an argument. */
  argument?: string
  fields: BodyField[]
  /** Whether arguments that are neither parameters nor declared fields are sent as fields. */
  additionalFields?: true
}

/** The request of one operation, without the arguments of a call. */
export interface OperationPlan {
  method: string
  /** A path template, with `{name}` for each path parameter. */
  path: string
  /** The operation's own server as an absolute URL, if it differs from the description's. */
  server?: string
  /** Whether the operation takes no credentials (`security: []`). */
  anonymous?: true
  parameters: Parameter[]
  body?: RequestBody
}

/** The parts of the description's security schemes that are used as defaults for the configuration. */
export interface SecurityDefaults {
  apiKey?: { name: string, in: 'header' | 'query' | 'cookie' }
  tokenUrl?: string
  openIdConnectUrl?: string
}

/** An OpenAPI description ready for serving: pages and plans are JSON texts, and each plan is parsed when needed. */
export interface CompiledDescription {
  title: string
  version: string
  instructions: string | undefined
  /** The absolute URL of the description's first server; undefined if it states none. */
  serverUrl: string | undefined
  securityDefaults: SecurityDefaults
  /** `names` and `plans` have one entry for each operation, in the same order. */
  names: string[]
  plans: string[]
  /** The results of `tools/list`; the cursor of each page but the first is its index. */
  pages: string[]
  /** Sentences about omitted parts, with the reasons. */
  warnings: string[]
}

/** Thrown for arguments from which no request can be created. The message is for the caller of the tool. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

/**
 * Thrown for an OpenAPI description, or a part of one, that cannot be used. The message states the reason and the
 * location.
 */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}
