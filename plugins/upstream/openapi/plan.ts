/** The location of a parameter: `in` of the Parameter Object. */
export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie'

/** The serialization styles of OpenAPI 3, and `tabDelimited` for the `tsv` of Swagger 2.0. */
export type SerializationStyle =
  'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'tabDelimited' | 'deepObject'

/** How one value is serialized: the members of a Parameter Object or an Encoding Object. */
export interface Serialization {
  style: SerializationStyle
  explode: boolean
  /** Whether reserved characters are not percent-encoded. */
  allowReserved?: true
  /**
   * The texts between the elements of arrays within the array, from the outside in; those further inside are sent as
   * JSON.
   */
  innerDelimiters?: string[]
}

/** How an argument of the tool becomes a parameter of the request. */
export interface Parameter extends Serialization {
  /** The name of the tool's argument. */
  argument: string
  /** The parameter's name in the request. */
  name: string
  in: ParameterLocation
  required?: true
  /** Whether the value's JSON text is sent, as one string: the parameter has a JSON `content` instead of a `schema`. */
  json?: true
  /** For path parameters: slashes in the value are kept. */
  withSlashes?: true
}

/** A field of a form, or a property of a JSON body. */
export interface BodyField {
  /** The field's name in the request. */
  name: string
  /** The name of the tool's argument, if it differs. */
  argument?: string
  required?: true
  /** Whether the value is sent as bytes: the argument contains them in base64 or as a `data:` URL. */
  binary?: true
  /** The media type of the value, and so of the field's part in a multipart form. */
  contentType?: string
  /** How the value is serialized; undefined for the default of the form's media type. */
  serialization?: Serialization
  /**
   * In a multipart form, an array is sent as one part, with this text between the elements; undefined: as several
   * parts.
   */
  delimiter?: string
}

/** How arguments of the tool become the body of the request. */
export interface RequestBody {
  contentType: string
  /** Whether the argument may state another media type for the body, in a `data:` URL. */
  anyContentType?: true
  format: 'json' | 'urlencoded' | 'multipart' | 'text' | 'binary'
  required?: true
  /** The name of the argument that contains the whole body; undefined if each field is an argument. */
  argument?: string
  fields: BodyField[]
  /** Whether arguments that are neither parameters nor declared fields are sent as fields. */
  additionalFields?: true
}

/** How the request of one operation is created from the arguments of a call. */
export interface OperationPlan {
  method: string
  /** The path as a template, with `{name}` for each path parameter. */
  path: string
  /** The server of the operation or its path item, as an absolute URL; undefined: the description's server is used. */
  server?: string
  /** Whether the operation needs no credentials (`security: []`), so that none are sent. */
  anonymous?: true
  parameters: Parameter[]
  body?: RequestBody
}

/**
 * Values from the description's security schemes, used where the configured credentials (`openapi.security`) lack them.
 */
export interface CredentialDefaults {
  apiKey?: { name: string, in: 'header' | 'query' | 'cookie' }
  tokenUrl?: string
  openIdConnectUrl?: string
}

/** An OpenAPI description, compiled into tools (`pages`) and the requests that they make (`plans`). */
export interface CompiledDescription {
  title: string
  version: string
  instructions: string | undefined
  /** The absolute URL of the description's first server; undefined if it states none. */
  serverUrl: string | undefined
  credentialDefaults: CredentialDefaults
  /** The name of the tool for each operation. */
  names: string[]
  /** The `OperationPlan` for each operation as JSON text, in the order of `names`. */
  plans: string[]
  /** The results of `tools/list` as JSON texts, page by page. The cursor of each page but the first is its index. */
  pages: string[]
  /** Sentences about omitted parts, with the reasons. */
  warnings: string[]
}

/** Thrown if no request can be created from a call's arguments. The message is for the caller of the tool. */
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
