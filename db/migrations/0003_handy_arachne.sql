CREATE TABLE "prompts" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "prompts_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "resources" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "resources_key_unique" UNIQUE("key")
);
