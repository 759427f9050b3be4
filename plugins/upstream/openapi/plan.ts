/** Where a parameter stands in the request. */
export type Place = 'path' | 'query' | 'header' | 'cookie'

/** How a value is written: the styles of OpenAPI 3, and Swagger's tabs. */
export type Style = 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'tabDelimited' | 'deepObject'

/** How one value is written. */
export interface Writing {
  style: Style
  explode: boolean
  /** Reserved characters stay as they are. */
  reserved?: true
}

export interface Parameter extends Writing {
  /** The tool's argument that gives it. */
  argument: string
  /** Its name in the request. */
  name: string
  in: Place
  required?: true
  /** It is written as JSON, then as one value. */
  json?: true
}

/** One field of a form. */
export interface Field {
  name: string
  required?: true
  /** Bytes: base64, or a `data:` address, in the argument. */
  binary?: true
  /** The media type of its part, or of its value. */
  type?: string
  /** How it is written; undefined: as the form's media type has it. */
  writing?: Writing
  /** In a multipart form: a list is one part, with this between its elements. */
  delimiter?: string
}

export interface Body {
  /** Its media type. */
  type: string
  /** It may be of another type than that: what the argument says counts more. */
  anyType?: true
  form: 'json' | 'urlencoded' | 'multipart' | 'text' | 'binary'
  required?: true
  /** The argument that is the whole body; undefined: its fields are arguments of their own. */
  argument?: string
  fields: Field[]
  /** Arguments that nothing else knows are fields too. */
  open?: true
}

/** One operation of a REST API as a request to be filled in. */
export interface Plan {
  method: string
  /** With `{name}` where parameters go. */
  path: string
  /** Its own server, absolute, where it is another than the description's. */
  server?: string
  /** It takes no credentials (`security: []`). */
  anonymous?: true
  parameters: Parameter[]
  body?: Body
}

/** What is used of the description's security schemes where the configuration leaves it unsaid. */
export interface SchemeHints {
  apiKey?: { name: string, in: 'header' | 'query' | 'cookie' }
  tokenUrl?: string
  openIdConnectUrl?: string
}

/** An OpenAPI description as it is served: tools and plans as JSON texts, to be parsed one by one when they are needed. */
export interface Compiled {
  title: string
  version: string
  instructions: string | undefined
  /** The description's first server, absolute; undefined: it names none. */
  base: string | undefined
  hints: SchemeHints
  names: string[]
  tools: string[]
  plans: string[]
  /** What was left out and why, in sentences. */
  warnings: string[]
}
