-- In place of dimensions_echoes.sql where echoes are not recognised.
, echo_cells AS (SELECT c.* FROM cells c WHERE false)
