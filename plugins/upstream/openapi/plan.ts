/** Where a parameter stands in the request. */
export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie'

/** How a value is written: the styles of OpenAPI 3, and Swagger's tabs. */
export type Style = 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'tabDelimited' | 'deepObject'

/** How one value is written. */
export interface Serialization {
  style: Style
  explode: boolean
  /** Reserved characters stay as they are. */
  allowReserved?: true
}

export interface Parameter extends Serialization {
  /** The tool's argument that gives it. */
  argument: string
  /** Its name in the request. */
  name: string
  in: ParameterLocation
  required?: true
  /** It is written as JSON, then as one value. */
  json?: true
}

/** One field of a form. */
export interface FormField {
  name: string
  required?: true
  /** Bytes: base64, or a `data:` address, in the argument. */
  binary?: true
  /** The media type of its part, or of its value. */
  contentType?: string
  /** How it is written; undefined: as the form's media type has it. */
  serialization?: Serialization
  /** In a multipart form: a list is one part, with this between its elements. */
  delimiter?: string
}

export interface RequestBody {
  /** Its media type. */
  contentType: string
  /** It may be of another type than that: what the argument says counts more. */
  anyContentType?: true
  format: 'json' | 'urlencoded' | 'multipart' | 'text' | 'binary'
  required?: true
  /** The argument that is the whole body; undefined: its fields are arguments of their own. */
  argument?: string
  fields: FormField[]
  /** Arguments that nothing else knows are fields too. */
  additionalFields?: true
}

/** One operation of a REST API as a request to be filled in. */
export interface OperationPlan {
  method: string
  /** With `{name}` where parameters go. */
  path: string
  /** Its own server, absolute, where it is another than the description's. */
  server?: string
  /** It takes no credentials (`security: []`). */
  anonymous?: true
  parameters: Parameter[]
  body?: RequestBody
}

/** What is used of the description's security schemes where the configuration leaves it unsaid. */
export interface SecurityDefaults {
  apiKey?: { name: string, in: 'header' | 'query' | 'cookie' }
  tokenUrl?: string
  openIdConnectUrl?: string
}

/** An OpenAPI description as it is served: tools and plans as JSON texts, to be parsed one by one when they are needed. */
export interface CompiledDescription {
  title: string
  version: string
  instructions: string | undefined
  /** The description's first server, absolute; undefined: it names none. */
  serverUrl: string | undefined
  securityDefaults: SecurityDefaults
  names: string[]
  tools: string[]
  plans: string[]
  /** What was left out and why, in sentences. */
  warnings: string[]
}
