/** The location of a parameter: `in` of the Parameter Object. */
export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie'

/** The serialization styles of OpenAPI 3, and the tabs of Swagger 2.0. */
export type Style =
  'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'tabDelimited' | 'deepObject'

/** The serialization of one value. */
export interface Serialization {
  style: Style
  explode: boolean
  /** Reserved characters are not percent-encoded. */
  allowReserved?: true
}

export interface Parameter extends Serialization {
  /** The name of the tool's argument. */
  argument: string
  /** The name in the request. */
  name: string
  in: ParameterLocation
  required?: true
  /** The value is serialized as JSON, and then as one string. */
  json?: true
  /** Of a path: slashes in the value stay slashes. */
  withSlashes?: true
}

export interface BodyField {
  /** The name in the request. */
  name: string
  /** The name of the tool's argument, where it is another one. */
  argument?: string
  required?: true
  /** The value is bytes: base64, or a `data:` URL, in the argument. */
  binary?: true
  /** The media type of the field's part, or of its value. */
  contentType?: string
  /** Undefined for the default of the form's media type. */
  serialization?: Serialization
  /** In a multipart form: an array is one part, with this text between its elements. */
  delimiter?: string
}

export interface RequestBody {
  contentType: string
  /** The body may have another media type, which the argument states. */
  anyContentType?: true
  format: 'json' | 'urlencoded' | 'multipart' | 'text' | 'binary'
  required?: true
  /** The name of the argument that is the whole body; undefined: each field is an argument. */
  argument?: string
  fields: BodyField[]
  /** Arguments that are neither parameters nor declared fields are fields, too. */
  additionalFields?: true
}

/** The request of one operation, to be completed with the arguments of a call. */
export interface OperationPlan {
  method: string
  /** A path template, with `{name}` for each path parameter. */
  path: string
  /** The operation's own server as an absolute URL, where it is not the description's. */
  server?: string
  /** The operation takes no credentials (`security: []`). */
  anonymous?: true
  parameters: Parameter[]
  body?: RequestBody
}

/** The parts of the description's security schemes that stand in for what the configuration does not state. */
export interface SecurityDefaults {
  apiKey?: { name: string, in: 'header' | 'query' | 'cookie' }
  tokenUrl?: string
  openIdConnectUrl?: string
}

/** An OpenAPI description as it is served: pages and plans as JSON texts, each plan parsed when it is needed. */
export interface CompiledDescription {
  title: string
  version: string
  instructions: string | undefined
  /** The absolute URL of the description's first server; undefined: the description names none. */
  serverUrl: string | undefined
  securityDefaults: SecurityDefaults
  /** `names` and `plans` have one entry for each operation, in the same order. */
  names: string[]
  plans: string[]
  /** The results of `tools/list`; the cursor of each but the first is its index. */
  pages: string[]
  /** Sentences about the parts that were left out, and why. */
  warnings: string[]
}
/** Arguments that no request can be made of. The message is for the caller of the tool. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

/** An OpenAPI description, or a part of one, that cannot be used. The message states the reason and the place. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}
