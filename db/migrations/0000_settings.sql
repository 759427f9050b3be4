CREATE TABLE "bearer_keys" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"token_hash" text,
	CONSTRAINT "bearer_keys_key_unique" UNIQUE("key"),
	CONSTRAINT "bearer_keys_token_hash_unique" UNIQUE("token_hash")
);
--> statement-breakpoint
CREATE TABLE "commits" (
	"version" bigint PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"touched" jsonb
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"key" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"name" text,
	CONSTRAINT "groups_key_unique" UNIQUE("key"),
	CONSTRAINT "groups_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "revision" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"version" bigint NOT NULL,
	"head" uuid NOT NULL,
	CONSTRAINT "revision_is_one_row" CHECK ("revision"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "sections" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"name" text NOT NULL,
	CONSTRAINT "sections_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "servers" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"name" text NOT NULL,
	CONSTRAINT "servers_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "system_config" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "system_config_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "users_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE INDEX "counters_expires" ON "counters" USING btree ("expires");